package catalog_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/schema"
	"github.com/tidemark-cdc/tidemark/testenv/check"
)

// randomValues are expressions that the server makes a value of a type of, another in each row.
var randomValues = []struct{ typ, sql string }{
	{"boolean", "random() < 0.5"},
	{"smallint", "(random() * 65535 - 32768)::int"},
	{"integer", "(random() * 4294967295 - 2147483648)::bigint"},
	{"bigint", "((random() - 0.5) * 10 ^ (random() * 18)::int)::bigint"},
	{"oid", "(random() * 4294967295)::bigint"},
	{"real", "((random() - 0.5) * 10 ^ (random() * 70 - 35)::int)::real"},
	{"double precision", "(random() - 0.5) * 10 ^ (random() * 500 - 250)::int"},
	{"double precision", "(random() * 1000)::int / 8.0"},
	{"numeric(30,7)", "(random() - 0.5)::numeric * 10 ^ (random() * 22)::int"},
	{"numeric(5,-2)", "(random() * 9999000)::int"},
	{"numeric(3,6)", "random() / 1001"},
	{"numeric", "(random() - 0.5)::numeric * 10 ^ (random() * 300 - 150)::int"},
	{"money", "((random() - 0.5) * 10 ^ (random() * 16)::int)::numeric"},
	{"uuid", "gen_random_uuid()"},
	{"bytea", "decode(substr(md5(random()::text), 1, 2 * (random() * 16)::int), 'hex')"},
	{"date", "date '4714-11-24 BC' + (random() * 2147483000)::int"},
	{"date", "date '0010-01-01 BC' + (random() * 8000)::int"},
	{"time", "time '00:00' + random() * interval '86399.999999 seconds'"},
	{"time(0)", "time '00:00' + random() * interval '86399 seconds'"},
	{"timestamp", "timestamp '4714-11-24 BC' + random() * interval '298000 years'"},
	{"timestamp(3)", "timestamp '1960-01-01' + random() * interval '100 years'"},
	{"timestamptz", "timestamptz '1850-01-01' + random() * interval '300 years'"},
	{"timetz", "(time '00:00' + random() * interval '86399 seconds')::timetz"},
	{"interval", "random() * interval '100 years' - random() * interval '9 days 7 seconds'"},
	{"text", "substr(md5(random()::text), 1, (random() * 32)::int) || chr(1 + (random() * 50000)::int)"},
	{"char(5)", "substr(md5(random()::text), 1, (random() * 5)::int)"},
	{"bit(9)", "(random() * 511)::int::bit(9)"},
	{"inet", "'10.0.0.0'::inet + (random() * 16777215)::int"},
	{"point", "point(random(), random() * 1e10)"},
	{"jsonb", "jsonb_build_object('k', random(), 'v', md5(random()::text))"},
	{"int8range", "int8range((random() * 1000)::int, 1000 + (random() * 1000)::int)"},
	{"integer[]", "ARRAY[(random() * 100)::int, CASE WHEN random() < 0.5 THEN 7 END]"},
	{"numeric(9,3)[]", "ARRAY[random() * 100000, NULL]"},
	{"date[]", "ARRAY[date '0010-01-01 BC' + (random() * 8000)::int]"},
	{"timestamptz[]", "ARRAY[timestamptz '1850-01-01' + random() * interval '300 years']"},
	{"double precision[]", "ARRAY[random() * 1e-9, random() * 1e20]"},
	{"bytea[]", "ARRAY[decode(md5(random()::text), 'hex')]"},
	{"text[]", `ARRAY[chr(1 + (random() * 127)::int), '', 'NULL', NULL, 'a"\' || (random() * 9)::int]`},
	{"hstore", `hstore(ARRAY['a' || (random() * 99)::int, '"', 'b'], ARRAY[md5(random()::text), NULL, '\'])`},
	{"amt2", "(random() - 0.5) * 99999"},
}

// The server makes random values; what another Avro library reads in the field is turned back into
// text by code that shares nothing with the encoder, and is the server's own text. The values are the
// same in every run (CONTRIBUTING.md says how to look at others).
func TestRandomValuesComeBackAsTheirText(t *testing.T) {
	const rows = 400
	db := newDatabase(t, "18", hostile...)
	db.run(prepare...)
	db.run(seeded())
	var columns, sql []string
	for i, v := range randomValues {
		columns, sql = append(columns, fmt.Sprintf("c%d %s", i, v.typ)), append(sql, v.sql)
	}
	db.run("CREATE TABLE v ("+strings.Join(columns, ", ")+")",
		fmt.Sprintf("INSERT INTO v SELECT %s FROM generate_series(1, %d)", strings.Join(sql, ", "), rows))
	types := db.resolve("v")
	db.run("RESET search_path")
	results, err := db.PgConn().Exec(db.ctx, "SELECT * FROM public.v").ReadAll()
	if err != nil || len(results[0].Rows) != rows {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i, typ := range types {
		wrong := 0
		for _, row := range results[0].Rows {
			text := string(row[i])
			got := backToText(randomValues[i].typ, typ, decoded(t, typ, text))
			if got != text {
				if wrong++; wrong == 1 {
					t.Errorf("%s %q comes back as %q", randomValues[i].typ, text, got)
				}
			}
		}
		if wrong > 1 {
			t.Errorf("%s: %d of %d values", randomValues[i].typ, wrong, rows)
		}
	}
}

// seeded makes the server's random values those of one seed, between -1 and 1.
func seeded() string {
	return "SELECT setseed(" + cmp.Or(os.Getenv("TIDEMARK_VALUES_SEED"), "0.5") + ")"
}

// backToText is the text that PostgreSQL prints for an Avro value of a column, by its SQL type.
func backToText(sql string, typ schema.Type, v any) string {
	if element, ok := strings.CutSuffix(sql, "[]"); ok {
		return arrayText(element, typ, v.([]any))
	}
	base, _, _ := strings.Cut(sql, "(")
	switch v := v.(type) {
	case bool:
		return map[bool]string{true: "t", false: "f"}[v]
	case string:
		return v
	case []byte:
		return `\x` + hex.EncodeToString(v)
	case float32:
		return check.FloatText(float64(v), 32)
	case float64:
		return check.FloatText(v, 64)
	case *big.Rat:
		if base == "money" {
			return moneyText(v)
		}
		return v.FloatString(scaleIn(avroText(typ)))
	case map[string]any:
		return hstoreText(v)
	case int32:
		if base == "date" {
			return dateText(int64(v))
		}
		return strconv.Itoa(int(v))
	case int64:
		return longText(base, v)
	}
	return fmt.Sprintf("no text for %T", v)
}

func longText(base string, v int64) string {
	const day = 86_400_000_000
	days, micros := v/day, v%day
	if micros < 0 {
		days, micros = days-1, micros+day
	}
	text := ""
	switch base {
	case "time":
		return clockText(v)
	case "timestamptz":
		text = "+00"
		fallthrough
	case "timestamp":
		date, era, _ := strings.Cut(dateText(days), " ")
		if era != "" {
			era = " " + era
		}
		return date + " " + clockText(micros) + text + era
	}
	return strconv.FormatInt(v, 10)
}

func clockText(micros int64) string {
	seconds := micros / 1_000_000
	text := fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	if part := micros % 1_000_000; part > 0 {
		text += "." + strings.TrimRight(fmt.Sprintf("%06d", part), "0")
	}
	return text
}

// dateText counts the days of whole cycles of 400 years, then years and months one by one.
func dateText(days int64) string {
	const cycle = 146_097
	days += 719_162 // since 0001-01-01
	year := int64(1)
	cycles := days / cycle
	if days%cycle < 0 {
		cycles--
	}
	days, year = days-cycles*cycle, year+400*cycles
	leap := func() bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }
	for {
		length := int64(365)
		if leap() {
			length++
		}
		if days < length {
			break
		}
		days, year = days-length, year+1
	}
	months := []int64{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if leap() {
		months[1]++
	}
	month := 0
	for days >= months[month] {
		days, month = days-months[month], month+1
	}
	era := ""
	if year <= 0 {
		year, era = 1-year, " BC"
	}
	return fmt.Sprintf("%04d-%02d-%02d%s", year, month+1, days+1, era)
}

func moneyText(v *big.Rat) string {
	whole, cents, _ := strings.Cut(new(big.Rat).Abs(v).FloatString(2), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if v.Sign() < 0 {
		return "-$" + whole + "." + cents
	}
	return "$" + whole + "." + cents
}

func scaleIn(avro string) int {
	_, after, _ := strings.Cut(avro, `"scale":`)
	n, _ := strconv.Atoi(after[:strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })])
	return n
}

func arrayText(element string, typ schema.Type, items []any) string {
	parts := make([]string, len(items))
	for i, item := range items {
		if item == nil {
			parts[i] = "NULL"
			continue
		}
		text := backToText(element, typ, unwrapped(item))
		if text == "" || strings.EqualFold(text, "null") || strings.ContainsAny(text, "{}\",\\ \t\n\r\v\f") {
			text = quotedText(text)
		}
		parts[i] = text
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func quotedText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// hstoreText has the pairs in the order in which the server keeps them: shorter keys first.
func hstoreText(m map[string]any) string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	var pairs []string
	for _, key := range keys {
		value := "NULL"
		if m[key] != nil {
			value = quotedText(unwrapped(m[key]).(string))
		}
		pairs = append(pairs, quotedText(key)+"=>"+value)
	}
	return strings.Join(pairs, ", ")
}
