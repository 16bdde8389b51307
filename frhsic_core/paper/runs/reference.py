# SHIM: frhsic_core.paper.runs.reference -> frhsic_core.paper.runs.stored
"""Keep the old name of the stored results until their importers are rewritten."""

from frhsic_core.paper.runs.stored import book_folder, paper_table, printed_cells, reference_sweep, stored_rows

__all__ = ["book_folder", "paper_table", "printed_cells", "reference_sweep", "stored_rows"]
