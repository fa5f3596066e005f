"""The only code that imports Streamlit, besides app.py and pages/."""
