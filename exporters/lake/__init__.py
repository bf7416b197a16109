"""Lake: every snapshot and plan, kept (spec §11).

`storage` a folder or an object store; `lake` the front; `manifest` how far a cycle got, `forward` what can still be
carried out, `rest` a world in which nothing happened; `days`, `records` compacted; `fold`, `foldtables`, `said` as
reports read it. Imports `exporters.plans`.
"""
