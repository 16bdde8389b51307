"""FRHSIC and its rivals as scikit-learn estimators, with their warnings."""
