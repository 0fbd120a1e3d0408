package schema

// A domain is its base type, which was resolved with the domain's own typmod: for a column of a
// domain type the stream announces typmod -1 (fact W7), and of domains over domains only the one
// next to the base type can have a typmod. Only the name is the domain's.
func domainType(info TypeInfo, base Type) Type {
	base.PGName = qualifiedName(info)
	return base
}
