package cases_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestF57K01NumericNaNAndInfinities(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE DOMAIN price AS numeric(6,2)`,
			`CREATE TABLE c01(id int PRIMARY KEY, n numeric, n2 numeric(6,2), f4 real, f8 float8,
				dom price, arr numeric(6,2)[], free numeric[], fs float8[])`)
		r.values("c01", `INSERT INTO c01 VALUES
			(1,'NaN','NaN','NaN','NaN','NaN','{1.5,NaN}','{1.5,NaN,-Infinity}','{NaN,-Infinity,-0}'),
			(2,'Infinity',NULL,'Infinity','Infinity',NULL,NULL,NULL,NULL),
			(3,'-Infinity',NULL,'-Infinity','-Infinity',NULL,NULL,NULL,NULL),
			(4,0,0,'-0','-0',-0.01,'{0,-9999.99}',NULL,NULL),
			(5,'1e20','1234.50','1e-45','5e-324',9999.99,'{}',NULL,NULL)`,
			`{arr:!{1.50,NaN} dom:!NaN f4:NaN f8:NaN free:["1.5" "NaN" "-Infinity"] fs:[NaN -Inf -0]`+
				` id:1 n:"NaN" n2:!NaN}`,
			`{arr:- dom:- f4:+Inf f8:+Inf free:- fs:- id:2 n:"Infinity" n2:-}`,
			`{arr:- dom:- f4:-Inf f8:-Inf free:- fs:- id:3 n:"-Infinity" n2:-}`,
			`{arr:[0d -9999.99d] dom:-0.01d f4:-0 f8:-0 free:- fs:- id:4 n:"0" n2:0d}`,
			`{arr:[] dom:9999.99d f4:1e-45 f8:5e-324 free:- fs:- id:5 n:"100000000000000000000" n2:1234.5d}`,
		)
	})
}

// The case's own comparison: the same rows under other keys.
func TestK01UnderAnotherKey(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE c01(id int PRIMARY KEY, n numeric, n2 numeric(6,2), f4 real, f8 float8)`,
			`INSERT INTO c01 VALUES (1,'NaN','NaN','NaN','NaN'),(4,0,0,'-0','-0')`)
		run := r.streaming()
		r.exec(`UPDATE c01 SET id=id+10`)
		same(t, "event", lines(r.drain(run, "c01")),
			`r NOT_APPLICABLE {id:1} {f4:NaN f8:NaN id:1 n:"NaN" n2:!NaN}`,
			`r NOT_APPLICABLE {id:4} {f4:-0 f8:-0 id:4 n:"0" n2:0d}`,
			`d KEY {id:1} old{id:1}`, `x {id:1}`,
			`c KEY {id:11} {f4:NaN f8:NaN id:11 n:"NaN" n2:!NaN} old{id:1}`,
			`d KEY {id:4} old{id:4}`, `x {id:4}`,
			`c KEY {id:14} {f4:-0 f8:-0 id:14 n:"0" n2:0d} old{id:4}`)
		r.clean(run)
	})
}

// A key has no flag: what its type cannot hold stops the connector, in the snapshot as in the
// stream, and key.text.columns is the way out.
func TestK01InAKey(t *testing.T) {
	keyCase(t, "numeric(6,2)", "NaN", `{id:"1.00"}`, `{id:"NaN"}`)
}

func TestK02InAKey(t *testing.T) {
	keyCase(t, "date", "infinity", `{id:"2024-02-29"}`, `{id:"infinity"}`)
}

func TestK03InAKey(t *testing.T) {
	keyCase(t, "time", "24:00", `{id:"00:00:00"}`, `{id:"24:00:00"}`)
}

func keyCase(t *testing.T, typ, bad string, legal, text string) {
	t.Helper()
	good := map[string]string{"numeric(6,2)": "1", "date": "2024-02-29", "time": "00:00"}[typ]
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.exec(`CREATE TABLE k(id `+typ+` PRIMARY KEY)`, `INSERT INTO k VALUES ('`+good+`')`)
		run := r.streaming()
		r.exec(`INSERT INTO k VALUES ('`+bad+`')`, `DELETE FROM k WHERE id = '`+good+`'`)
		r.ends(run, fault.KeyUnrepresentable, "public.k", "id", "key.text.columns")
		if got := ops(r.read(r.topic("k"))); got != "r" {
			t.Errorf("sent %q, want only the snapshot's row", got)
		}
		r.ends(r.start(), fault.KeyUnrepresentable) // and again: nothing was passed over
		r.keys["key.text.columns"] = `public\.k\.id`
		r.level(sr.CompatNone, "shop.public.k-key", "shop.public.k-value") // it is another key
		run = r.streaming()
		events := r.drain(run, "k")
		same(t, "key", []string{fields(events[1].key, nil), fields(events[2].key, nil)}, text, legal)
		if got := ops(events); got != "rcdx" {
			t.Errorf("sent %q, want rcdx", got)
		}
		r.clean(run)
	})
}
