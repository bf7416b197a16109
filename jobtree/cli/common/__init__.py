"""Common: what every command shares.

`args` options and exit codes; `synonyms` what other tools call a command; `files`, `lakes`, `lookup`, `owners`,
`moments` what people name; `show`, `numbers`, `progress` what they see; `jump` a file whose last time is long ago.
"""
