package schema

// OIDs of the built-in types that are not text here (src/include/catalog/pg_type.dat), or whose
// name has a typmod in it.
const (
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidOID         = 26
	oidXID         = 28
	oidBox         = 603
	oidFloat4      = 700
	oidFloat8      = 701
	oidMoney       = 790
	oidBPChar      = 1042
	oidVarchar     = 1043
	oidDate        = 1082
	oidTime        = 1083
	oidTimestamp   = 1114
	oidTimestampTZ = 1184
	oidInterval    = 1186
	oidTimeTZ      = 1266
	oidBit         = 1560
	oidVarbit      = 1562
	oidNumeric     = 1700
	oidUUID        = 2950
)

// builtinType is a row of pg_type that has the same OID in every database.
type builtinType struct {
	name  string // as format_type prints it without a typmod
	array uint32 // OID of its array type
	delim byte   // typdelim, when it is not the comma
}

func (b builtinType) delimiter() byte {
	if b.delim != 0 {
		return b.delim
	}
	return ','
}

// builtins are the types of pg_type.dat that a column can have. int2vector and oidvector print
// as "1 2 3": they are text, not arrays.
var builtins = map[uint32]builtinType{
	oidBool:        {name: "boolean", array: 1000},
	oidBytea:       {name: "bytea", array: 1001},
	18:             {name: `"char"`, array: 1002},
	19:             {name: "name", array: 1003},
	oidInt8:        {name: "bigint", array: 1016},
	oidInt2:        {name: "smallint", array: 1005},
	22:             {name: "int2vector", array: 1006},
	oidInt4:        {name: "integer", array: 1007},
	24:             {name: "regproc", array: 1008},
	25:             {name: "text", array: 1009},
	oidOID:         {name: "oid", array: 1028},
	27:             {name: "tid", array: 1010},
	oidXID:         {name: "xid", array: 1011},
	29:             {name: "cid", array: 1012},
	30:             {name: "oidvector", array: 1013},
	114:            {name: "json", array: 199},
	142:            {name: "xml", array: 143},
	600:            {name: "point", array: 1017},
	601:            {name: "lseg", array: 1018},
	602:            {name: "path", array: 1019},
	oidBox:         {name: "box", array: 1020, delim: ';'},
	604:            {name: "polygon", array: 1027},
	628:            {name: "line", array: 629},
	650:            {name: "cidr", array: 651},
	oidFloat4:      {name: "real", array: 1021},
	oidFloat8:      {name: "double precision", array: 1022},
	718:            {name: "circle", array: 719},
	774:            {name: "macaddr8", array: 775},
	oidMoney:       {name: "money", array: 791},
	829:            {name: "macaddr", array: 1040},
	869:            {name: "inet", array: 1041},
	1033:           {name: "aclitem", array: 1034},
	oidBPChar:      {name: "character", array: 1014},
	oidVarchar:     {name: "character varying", array: 1015},
	oidDate:        {name: "date", array: 1182},
	oidTime:        {name: "time without time zone", array: 1183},
	oidTimestamp:   {name: "timestamp without time zone", array: 1115},
	oidTimestampTZ: {name: "timestamp with time zone", array: 1185},
	oidInterval:    {name: "interval", array: 1187},
	oidTimeTZ:      {name: "time with time zone", array: 1270},
	oidBit:         {name: "bit", array: 1561},
	oidVarbit:      {name: "bit varying", array: 1563},
	oidNumeric:     {name: "numeric", array: 1231},
	1790:           {name: "refcursor", array: 2201},
	2202:           {name: "regprocedure", array: 2207},
	2203:           {name: "regoper", array: 2208},
	2204:           {name: "regoperator", array: 2209},
	2205:           {name: "regclass", array: 2210},
	2206:           {name: "regtype", array: 2211},
	oidUUID:        {name: "uuid", array: 2951},
	2970:           {name: "txid_snapshot", array: 2949},
	3220:           {name: "pg_lsn", array: 3221},
	3614:           {name: "tsvector", array: 3643},
	3615:           {name: "tsquery", array: 3645},
	3642:           {name: "gtsvector", array: 3644},
	3734:           {name: "regconfig", array: 3735},
	3769:           {name: "regdictionary", array: 3770},
	3802:           {name: "jsonb", array: 3807},
	3904:           {name: "int4range", array: 3905},
	3906:           {name: "numrange", array: 3907},
	3908:           {name: "tsrange", array: 3909},
	3910:           {name: "tstzrange", array: 3911},
	3912:           {name: "daterange", array: 3913},
	3926:           {name: "int8range", array: 3927},
	4072:           {name: "jsonpath", array: 4073},
	4089:           {name: "regnamespace", array: 4090},
	4096:           {name: "regrole", array: 4097},
	4191:           {name: "regcollation", array: 4192},
	4451:           {name: "int4multirange", array: 6150},
	4532:           {name: "nummultirange", array: 6151},
	4533:           {name: "tsmultirange", array: 6152},
	4534:           {name: "tstzmultirange", array: 6153},
	4535:           {name: "datemultirange", array: 6155},
	4536:           {name: "int8multirange", array: 6157},
	5038:           {name: "pg_snapshot", array: 5039},
	5069:           {name: "xid8", array: 271},
}

// builtinElements is the element type of each built-in array type.
var builtinElements = func() map[uint32]uint32 {
	m := make(map[uint32]uint32, len(builtins))
	for oid, b := range builtins {
		m[b.array] = oid
	}
	return m
}()
