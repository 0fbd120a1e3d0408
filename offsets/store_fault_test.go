package offsets

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// deafConn lets the broker answer one kind of request, and loses the answer.
type deafConn struct {
	net.Conn
	armed *atomic.Bool
	lost  atomic.Bool
}

func (c *deafConn) Write(b []byte) (int, error) {
	// Four bytes of size, two of the request's key.
	if c.armed.Load() && len(b) > 6 && int16(binary.BigEndian.Uint16(b[4:])) == int16(kmsg.EndTxn) {
		c.lost.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.lost.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// The transaction is committed and the answer is lost: the store says that it does not know, does
// not try again, and the next reading shows what is there.
func TestF34StoreAnswerToTheCommitIsLost(t *testing.T) {
	c := newCluster(t)
	var armed atomic.Bool
	s := fenced(t, c, func(o *StoreOptions) {
		o.CallTimeout = time.Second
		o.ClientOpts = append(o.ClientOpts, kgo.Dialer(
			func(ctx context.Context, network, host string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, host)
				return &deafConn{Conn: conn, armed: &armed}, err
			}))
	})
	mustSave(t, s, position(10))
	armed.Store(true)
	if err := s.Save(t.Context(), position(20)); !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("%v", err)
	}
	armed.Store(false)
	if err := s.Save(t.Context(), position(30)); !errors.Is(err, ErrNotFenced) {
		t.Fatalf("%v", err)
	}
	if err := s.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, 20)
}

// The commit never reaches the coordinator: the same from here, and the fence aborts it.
func TestF34StoreCommitIsLost(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c, func(o *StoreOptions) { o.CallTimeout = time.Second })
	mustSave(t, s, position(10))
	c.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = kerr.UnknownServerError.Code
		return resp, nil, true
	})
	if err := s.Save(t.Context(), position(20)); !errors.Is(err, ErrUnknownOutcome) {
		t.Fatalf("%v", err)
	}
	if err := s.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, 10)
}

// withoutTransactions is a broker that does not know them.
func withoutTransactions(t *testing.T) *kfake.Cluster {
	t.Helper()
	c := newCluster(t)
	transactional := map[int16]bool{
		int16(kmsg.InitProducerID): true, int16(kmsg.AddPartitionsToTxn): true,
		int16(kmsg.EndTxn): true,
	}
	c.ControlKey(int16(kmsg.ApiVersions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
		kversion.V3_0_0().EachMaxKeyVersion(func(key, version int16) {
			if !transactional[key] {
				k := kmsg.NewApiVersionsResponseApiKey()
				k.ApiKey, k.MaxVersion = key, version
				resp.ApiKeys = append(resp.ApiKeys, k)
			}
		})
		return resp, nil, true
	})
	return c
}

// Without transactions a position is a plain record: it is stored and read, and no writer is fenced.
func TestF39StoreOnABrokerWithoutTransactions(t *testing.T) {
	c := withoutTransactions(t)
	s := fenced(t, c)
	wantLoad(t, s, 0)
	mustSave(t, s, position(10))
	wantLoad(t, s, 10)
	other := fenced(t, c) // fences nobody
	mustSave(t, other, position(20))
	overwritten(t, s, true)
	mustSave(t, s, position(30))
	overwritten(t, s, false)
	wantLoad(t, other, 30)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("x"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := s.FenceWith(t.Context(), only{client}); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Fatalf("%v", err)
	}
}

func overwritten(t *testing.T, s *Store, want bool) {
	t.Helper()
	if got, err := s.Overwritten(t.Context()); err != nil || got != want {
		t.Errorf("overwritten %t, %v, want %t", got, err, want)
	}
}

// only is Data with nothing to flush.
type only struct{ client *kgo.Client }

func (o only) Client() *kgo.Client         { return o.client }
func (o only) Flush(context.Context) error { return nil }

func TestF19StoreBrokerUnreachableIsBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	opts := StoreOptions{
		ClientOpts: []kgo.Opt{kgo.SeedBrokers(addr)}, Topic: offsetsTopic, Connector: "shop",
		Prefix: "shop", CallTimeout: 300 * time.Millisecond,
	}
	if _, err := OpenStore(t.Context(), opts); fault.CodeOf(err) != fault.BrokerUnreachable {
		t.Fatalf("%v", err)
	}
}

func TestF19StoreSaveIsBoundedWhenTheBrokerGoesAway(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c, func(o *StoreOptions) { o.CallTimeout = 500 * time.Millisecond })
	mustSave(t, s, position(10))
	c.Close()
	if err := s.Save(t.Context(), position(20)); fault.CodeOf(err) != fault.BrokerUnreachable {
		t.Fatalf("%v", err)
	}
	if err := s.Fence(t.Context()); fault.CodeOf(err) != fault.BrokerUnreachable {
		t.Fatalf("%v", err)
	}
	if _, err := s.Load(t.Context()); fault.CodeOf(err) != fault.BrokerUnreachable {
		t.Fatalf("%v", err)
	}
}

// The broker takes the record and does not answer: the store does not wait for ever, and the
// successor of its session reads what became of it.
func TestF23StoreSaveIsBoundedWhenTheBrokerStalls(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c, func(o *StoreOptions) { o.CallTimeout = 500 * time.Millisecond })
	mustSave(t, s, position(10))
	release := make(chan struct{})
	stall := func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-release })
		return nil, nil, false
	}
	c.ControlKey(int16(kmsg.Produce), stall)
	if err := s.Save(t.Context(), position(20)); fault.CodeOf(err) != fault.BrokerUnreachable {
		t.Fatalf("%v", err)
	}
	close(release)
	if err := s.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, 10)
	mustSave(t, s, position(30))
	wantLoad(t, s, 30)
}

func TestF29StoreForbiddenTransactionalID(t *testing.T) {
	c := newCluster(t)
	s := openStore(t, c)
	c.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return resp, nil, true
	})
	err := s.Fence(t.Context())
	if fault.CodeOf(err) != fault.BrokerForbids ||
		!strings.Contains(err.Error(), "tidemark-offsets-shop") {
		t.Fatalf("%v", err)
	}
}

func TestF20StoreFollowsAMovedPartition(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3))
	s := fenced(t, c)
	mustSave(t, s, position(10))
	wantLoad(t, s, 10)
	for node := range int32(3) {
		if err := c.MoveTopicPartition(offsetsTopic, 0, node); err != nil {
			t.Fatal(err)
		}
		wantLoad(t, s, 10+LSN(node))
		mustSave(t, s, position(11+LSN(node)))
	}
}

// Each broker hears of a new topic at a time of its own: the one that is asked for its settings or
// its offsets may not know it yet.
func TestF26StoreBrokersHearOfTheTopicLater(t *testing.T) {
	c := newCluster(t)
	var settings, ends atomic.Int32
	unknown := kerr.UnknownTopicOrPartition.Code
	c.ControlKey(int16(kmsg.DescribeConfigs), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if settings.Add(1) > 2 {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, of := range r.(*kmsg.DescribeConfigsRequest).Resources {
			one := kmsg.NewDescribeConfigsResponseResource()
			one.ResourceType, one.ResourceName, one.ErrorCode = of.ResourceType, of.ResourceName, unknown
			resp.Resources = append(resp.Resources, one)
		}
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if ends.Add(1) > 2 {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, of := range r.(*kmsg.ListOffsetsRequest).Topics {
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic = of.Topic
			for _, p := range of.Partitions {
				part := kmsg.NewListOffsetsResponseTopicPartition()
				part.Partition, part.ErrorCode = p.Partition, unknown
				topic.Partitions = append(topic.Partitions, part)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	s := fenced(t, c)
	wantLoad(t, s, 0)
	if settings.Load() < 3 || ends.Load() < 3 {
		t.Errorf("asked %d times for settings, %d for offsets", settings.Load(), ends.Load())
	}
	mustSave(t, s, position(10))
	wantLoad(t, s, 10)
}

// A broker, or a client, that turns the first commit into an abort and says that all is well: the
// store has read the record back, and whoever saved is not told that it is stored.
func TestStoreReadsItsFirstRecordBack(t *testing.T) {
	for name, save := range map[string]func(*Store) error{
		"Save":  func(s *Store) error { return s.Save(t.Context(), position(10)) },
		"Reset": func(s *Store) error { return s.Reset(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			s := fenced(t, c)
			var lied atomic.Bool
			c.ControlKey(int16(kmsg.EndTxn), func(k kmsg.Request) (kmsg.Response, error, bool) {
				if lied.CompareAndSwap(false, true) {
					k.(*kmsg.EndTxnRequest).Commit = false
				}
				return nil, nil, false
			})
			err := save(s)
			if !fault.Has(err, fault.BrokerUnreachable) ||
				!strings.Contains(err.Error(), "does not hold at offset") {
				t.Fatalf("the record is not there, and the store says %v", err)
			}
			if err := s.Save(t.Context(), position(10)); !errors.Is(err, ErrNotFenced) {
				t.Errorf("the producer is used again: %v", err)
			}
			if err := s.Fence(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustSave(t, s, position(11))
			wantLoad(t, s, 11)
		})
	}
}

// The same without transactions: a broker confirms the first record at the place of another one.
func TestStoreReadsItsFirstRecordBackWithoutTransactions(t *testing.T) {
	c := withoutTransactions(t)
	mustSave(t, fenced(t, c, func(o *StoreOptions) { o.Connector = "another" }), position(5))
	s := fenced(t, c)
	var lied atomic.Bool
	c.ControlKey(int16(kmsg.Produce), func(k kmsg.Request) (kmsg.Response, error, bool) {
		if !lied.CompareAndSwap(false, true) {
			return nil, nil, false
		}
		req := k.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = req.Topics[0].Topic, req.Topics[0].TopicID
		partition := kmsg.NewProduceResponseTopicPartition()
		partition.Partition = req.Topics[0].Partitions[0].Partition
		topic.Partitions = append(topic.Partitions, partition)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	err := s.Save(t.Context(), position(10))
	if !fault.Has(err, fault.BrokerUnreachable) ||
		!strings.Contains(err.Error(), "does not hold at offset 0") {
		t.Fatalf("the record is not there, and the store says %v", err)
	}
	if err := s.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, position(11))
	wantLoad(t, s, 11)
}
