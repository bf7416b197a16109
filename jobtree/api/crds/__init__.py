"""CRDs: the kinds for an API server, and their reference page.

`schema` structural OpenAPI; `cel` the rules in CEL; `crds` the definitions; `reference` the page.
"""
