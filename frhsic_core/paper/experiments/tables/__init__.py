# SHIM: frhsic_core.paper.experiments.tables -> the experiments of the same names
