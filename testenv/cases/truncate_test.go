package cases_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// With record.too.large: truncate a row that the topic does not take passes without its longest
// values, which are marked; the old row goes first, and then before_image does not claim it.
func TestK18RecordsThatAreTooLargeAreTruncated(t *testing.T) {
	for _, mode := range []string{"disabled", "required"} {
		t.Run(mode, func(t *testing.T) {
			onVersions(t, 14, "", func(t *testing.T, r *rig) {
				r.keys["exactly.once.support"] = mode
				r.keys["record.too.large"] = "truncate"
				r.keys["topic.creation.default.max.message.bytes"] = "200000"
				r.exec(`CREATE TABLE c35(id int PRIMARY KEY, p text, q text, n int)`,
					fmt.Sprintf(`INSERT INTO c35 SELECT 1,`+huge+`,'small',1`, 8000))
				run := r.streaming()
				r.exec(fmt.Sprintf(`INSERT INTO c35 SELECT 2,`+huge+`,`+huge+`,2`, 8000, 3000),
					fmt.Sprintf(`INSERT INTO c35 SELECT 3,`+huge+`,'ok',3`, 6000),
					`ALTER TABLE c35 REPLICA IDENTITY FULL`, `UPDATE c35 SET q = 'new' WHERE id = 3`,
					`UPDATE c35 SET n = 5 WHERE id = 2`, `DELETE FROM c35 WHERE id = 1`)
				events := r.drain(run, "c35")
				same(t, "event", lines(events),
					`r NOT_APPLICABLE {id:1} {id:1 n:1 p:? q:"small"}`,
					`c NOT_APPLICABLE {id:2} {id:2 n:2 p:? q:<96000>}`,
					`c NOT_APPLICABLE {id:3} {id:3 n:3 p:<192000> q:"ok"}`,
					`u KEY {id:3} {id:3 n:3 p:<192000> q:"new"} old{id:3}`,
					`u KEY {id:2} {id:2 n:5 p:? q:<96000>} old{id:2}`,
					`d KEY {id:1} old{id:1}`, `x {id:1}`)
				state := events[0].value["column_states"].([]any)[0].(map[string]any)
				if inner(state["text"]) != "left out: 256003 bytes" {
					t.Errorf("the state is %v", state)
				}
				if events[3].headers["tidemark.before_image"] != "KEY" {
					t.Errorf("headers %v", events[3].headers)
				}
				r.until(run, "it is said", func() bool {
					return strings.Contains(r.log.String(), "events of a table were too large")
				})
				if n := strings.Count(r.log.String(), "events of a table were too large"); n != 1 {
					t.Errorf("%d warnings, want 1", n)
				}
				r.clean(run)
			})
		})
	}
}

// A key that is too large has nothing to leave out.
func TestK18ARecordThatIsStillTooLargeStops(t *testing.T) {
	onVersions(t, 14, "", func(t *testing.T, r *rig) {
		r.keys["record.too.large"] = "truncate"
		r.keys["topic.creation.default.max.message.bytes"] = "2000"
		r.exec(`CREATE TABLE c35(id text PRIMARY KEY, p text)`)
		run := r.streaming()
		r.exec(`INSERT INTO c35 VALUES ('a', repeat('x', 3000)), (repeat('k', 2000), 'b')`)
		r.ends(run, fault.RecordTooLarge, "shop.public.c35", "max.message.bytes")
		same(t, "event", lines(r.read(r.topic("c35"))), `c NOT_APPLICABLE {id:"a"} {id:"a" p:?}`)
	})
}
