"""The engine: what a run is, how it trains, what it records. No streamlit here."""
