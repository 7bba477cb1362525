"""The tables and figures of the papers, measured by kcp bench."""
