"""The site's sources; in Python only what writes its generated files and what MkDocs calls."""
