package capture

import "strings"

// quoteIdent quotes an identifier as SQL and the replication grammar both read it.
func quoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// quoteLiteral quotes a string constant; a backslash is an ordinary character in both grammars.
func quoteLiteral(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }
