"""Where state lives: one `protocol`, a state file or a live cluster behind it.

`statefile` the file, written whole or not at all (`disk`), its `document` in YAML or JSON (`yamltext`); `edits` what
users change; `memory` the same file in memory alone; `mending` a good object in place of one that cannot be read;
`secret_text` the lottery's secret.
"""
