# SHIM: frhsic_core.paper.experiments.neighbours -> frhsic_core.joint.information
"""Re-export the batched estimate of mutual information from its new home."""

from frhsic_core.joint.information import Information, ksg_information, principal_components, standardized

standardised = standardized  # SHIM

__all__ = ["Information", "ksg_information", "principal_components", "standardised"]
