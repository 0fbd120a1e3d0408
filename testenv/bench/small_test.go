package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// xlog wraps a message as the server sends it: CopyData of an XLogData.
func xlog(message []byte) []byte {
	out := append([]byte{'d', 0, 0, 0, 0, 'w'}, make([]byte, 24)...)
	out = append(out, message...)
	binary.BigEndian.PutUint32(out[1:], uint32(len(out)-1))
	return out
}

func TestTheBareReaderFindsAnInsertsFirstColumn(t *testing.T) {
	id, ok := firstColumn(xlog(insertFrame(ordinaryColumns, 4711)))
	if !ok || string(id) != "4711" {
		t.Errorf("%q, %v, wanted 4711", id, ok)
	}
	for name, message := range map[string][]byte{
		"a begin":    frame('B', uint64(1000), uint64(1), uint32(7)),
		"a relation": relationFrame(ordinaryColumns),
		"nothing":    nil,
	} {
		if id, ok := firstColumn(xlog(message)); ok {
			t.Errorf("%s has a first column: %q", name, id)
		}
	}
}

func TestTheKeyOfARecordIsReadFromAvroAndFromJSON(t *testing.T) {
	avro := append([]byte{0, 0, 0, 0, 7}, binary.AppendVarint(nil, 4711)...)
	for name, key := range map[string][]byte{
		"Avro": avro, "JSON": []byte(`{"id":4711}`), "JSON with a space": []byte(`{"id": 4711 }`),
	} {
		if got, err := keyOf(key); err != nil || got != 4711 {
			t.Errorf("%s: %d, %v, wanted 4711", name, got, err)
		}
	}
	for name, key := range map[string][]byte{
		"two longs": append(avro, 2), "no JSON": []byte("4711"), "JSON of a text": []byte(`{"id":"x"}`),
	} {
		if got, err := keyOf(key); err == nil {
			t.Errorf("%s: %d, wanted an error", name, got)
		}
	}
}

func TestThePageSaysWhatIsShortOfItsTarget(t *testing.T) {
	r := Report{Cores: 2, Figures: []Figure{
		{Name: "fast", Against: "them", Ratio: 5.5, Target: 5},
		{Name: "slow", Against: "them", Ratio: 4, Target: 5},
		{Name: "large", Middle: 300, Target: 200, AtMost: true},
		{Name: "told", Middle: 1},
	}}
	var page bytes.Buffer
	r.markdown(&page)
	_, short, _ := strings.Cut(page.String(), "## Short of the target\n\n")
	want := "- slow, against them: 80 % of its target.\n- large: 300 over its bound of 200.\n"
	if short != want {
		t.Errorf("found\n%s\nwanted\n%s", short, want)
	}
	if strings.Contains(page.String(), "other work") {
		t.Error("the machine is called busy without a load")
	}
	r.Load = "5.01 1.00 1.00"
	page.Reset()
	r.markdown(&page)
	if !strings.Contains(page.String(), "other work") {
		t.Error("a load of 5 on two cores is not called busy")
	}
}
