"""What the pages are made of: the only code beside them that imports streamlit."""
