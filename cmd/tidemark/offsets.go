package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/config"
	"github.com/tidemark-cdc/tidemark/connector/source"
	"github.com/tidemark-cdc/tidemark/internal/fault"
	"github.com/tidemark-cdc/tidemark/internal/kafkadial"
	"github.com/tidemark-cdc/tidemark/offsets"
)

// offsetsTimeout bounds the whole command: it speaks to one server and one topic.
const offsetsTimeout = time.Minute

func newOffsetsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "offsets",
		Short: "Show or change the stored position, beside the slot's",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("offsets wants one of show, set, reset")
		},
	}
	cmd.AddCommand(newOffsetsShowCmd(), newOffsetsSetCmd(), newOffsetsResetCmd())
	return cmd
}

// desk is one connector's stored record and its server, opened for a command.
type desk struct {
	cfg   *config.Connector
	src   *source.Source
	store *offsets.Store
}

// eachDesk opens what -c and --connector name, and calls f for each.
func eachDesk(
	cmd *cobra.Command, chosen *selection, f func(context.Context, *desk) error,
) error {
	worker, connectors, err := chosen.load(cmd, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), offsetsTimeout)
	defer cancel()
	for _, c := range connectors {
		d, err := openDesk(ctx, c, worker)
		if err != nil {
			return err
		}
		err = f(ctx, d)
		d.store.Close()
		d.src.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func openDesk(ctx context.Context, c *config.Connector, w config.Worker) (*desk, error) {
	src, err := source.Connect(ctx, c.Database, "tidemark offsets")
	if err != nil {
		return nil, err
	}
	opts, err := kafkadial.Options(w.Kafka)
	if err != nil {
		src.Close()
		return nil, err
	}
	store, err := offsets.OpenStore(ctx, offsets.StoreOptions{
		ClientOpts: opts, Topic: w.OffsetTopic, Connector: c.Name, Prefix: c.TopicPrefix,
		MustExist: true,
	})
	if err != nil {
		src.Close()
		return nil, err
	}
	return &desk{cfg: c, src: src, store: store}, nil
}

func newOffsetsShowCmd() *cobra.Command {
	var chosen selection
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show -c FILE",
		Short:   "Print the stored record beside what the server says now; touches nothing",
		Example: "  tidemark offsets show -c tidemark.yaml",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return eachDesk(cmd, &chosen, func(ctx context.Context, d *desk) error {
				view, err := d.view(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(view)
				}
				return view.print(cmd.OutOrStdout())
			})
		},
	}
	chosen.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "one line of JSON a connector")
	return cmd
}

// offsetsView is stored and present, side by side.
type offsetsView struct {
	Connector   string               `json:"connector"`
	Topic       string               `json:"offsets_topic"`
	Partition   int32                `json:"partition"`
	Stored      json.RawMessage      `json:"stored"`
	Slot        *offsets.SlotInfo    `json:"slot"`
	Publication *offsets.Fingerprint `json:"publication"`
	Differences []string             `json:"publication_differences"`

	record *offsets.Record
	name   string
}

func (d *desk) view(ctx context.Context) (*offsetsView, error) {
	v := &offsetsView{
		Connector: d.cfg.Name, Topic: d.store.Topic(), Partition: d.store.Partition(),
		Stored: json.RawMessage("null"), Differences: []string{}, name: d.cfg.SlotName,
	}
	var err error
	// The slot first: the record of a connector that runs is then never behind it.
	if v.Slot, err = d.src.Slot(ctx, d.cfg.SlotName); err != nil {
		return nil, err
	}
	if v.record, err = d.store.Load(ctx); err != nil {
		return nil, err
	}
	if v.record != nil {
		if v.Stored, err = v.record.Marshal(); err != nil {
			return nil, err
		}
	}
	if v.Publication, err = d.src.Publication(ctx, d.cfg.Publication); err != nil {
		return nil, err
	}
	if v.record != nil {
		for _, c := range offsets.Compare(v.record.Publication, v.Publication, nil, v.record.Intent) {
			v.Differences = append(v.Differences, c.String())
		}
	}
	return v, nil
}

func (v *offsetsView) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "connector\t%s\n", v.Connector)
	fmt.Fprintf(t, "offsets topic\t%s, partition %d\n", v.Topic, v.Partition)
	if r := v.record; r == nil {
		fmt.Fprintln(t, "stored position\tnone")
	} else {
		fmt.Fprintf(t, "stored position\t%s\n", lsnText(r.LSN))
		fmt.Fprintf(t, "  written\t%s\n", time.UnixMicro(r.TsUsec).UTC().Format(time.RFC3339))
		fmt.Fprintf(t, "  history, timeline\t%d, %d\n", r.History, r.Timeline)
		fmt.Fprintf(t, "  system identifier\t%s\n", r.SystemID)
		fmt.Fprintf(t, "  snapshot\t%s\n", snapshotText(r.Snapshot))
		if r.Intent != nil {
			fmt.Fprintf(t, "  intent\t%s\n", r.Intent.Kind)
		}
	}
	if s := v.Slot; s == nil {
		fmt.Fprintf(t, "slot %s\tdoes not exist\n", v.name)
	} else {
		fmt.Fprintf(t, "slot %s\tconfirmed_flush %s, restart %s\n",
			s.Name, lsnText(s.ConfirmedFlush), lsnText(s.RestartLSN))
		fmt.Fprintf(t, "  state\twal_status %s, active %t, PID %d\n", s.WALStatus, s.Active, s.ActivePID)
	}
	switch {
	case v.Publication == nil:
		fmt.Fprintln(t, "publication\tdoes not exist")
	case len(v.Differences) == 0:
		fmt.Fprintf(t, "publication %s\tas stored\n", v.Publication.Name)
	default:
		for _, d := range v.Differences {
			fmt.Fprintf(t, "publication\t%s\n", d)
		}
	}
	return t.Flush()
}

func lsnText(l offsets.LSN) string {
	if l == 0 {
		return "none"
	}
	return l.String()
}

func snapshotText(s *offsets.SnapshotState) string {
	switch {
	case s == nil:
		return "none"
	case s.Done:
		return "done"
	}
	left := 0
	for _, t := range s.Tables {
		if t.Status == offsets.TableRunning {
			left++
		}
	}
	return fmt.Sprintf("unfinished, %d tables left", left)
}

func newOffsetsSetCmd() *cobra.Command {
	var chosen selection
	var accept bool
	cmd := &cobra.Command{
		Use:   "set -c FILE --connector NAME --accept-publication",
		Short: "Store the present publication, when a person knows that nothing was lost",
		Example: "  tidemark offsets show -c tidemark.yaml --connector shop\n" +
			"  tidemark offsets set -c tidemark.yaml --connector shop --accept-publication",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if chosen.name == "" || !accept {
				return usageError("offsets set wants --connector NAME and --accept-publication")
			}
			return eachDesk(cmd, &chosen, func(ctx context.Context, d *desk) error {
				return d.change(ctx, func(r *offsets.Record) (*offsets.Record, error) {
					if r == nil {
						return nil, usageError("connector " + d.cfg.Name + " has no stored record")
					}
					present, err := d.src.Publication(ctx, d.cfg.Publication)
					if err != nil {
						return nil, err
					}
					if present == nil {
						return nil, fault.New(fault.PublicationMissing,
							"publication "+d.cfg.Publication+" does not exist")
					}
					r.Publication = offsets.Remember(r.Publication, present)
					return r, nil
				})
			})
		},
	}
	chosen.flags(cmd)
	cmd.Flags().BoolVar(&accept, "accept-publication", false, "store the present publication")
	return cmd
}

func newOffsetsResetCmd() *cobra.Command {
	var chosen selection
	var newHistory bool
	cmd := &cobra.Command{
		Use:   "reset -c FILE --connector NAME [--new-history]",
		Short: "Forget the position: the next start is a fresh one, with a snapshot",
		Long: "Forget the stored position. The slot must not be in use, and is left alone: drop it by\n" +
			"hand, since the next start makes its own. --new-history is for LSNs that start anew\n" +
			"(another cluster, a restored backup, a timeline that left before the position): events\n" +
			"of the new history are greater than all earlier ones.",
		Example: "  tidemark offsets reset -c tidemark.yaml --connector shop --new-history",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if chosen.name == "" {
				return usageError("offsets reset wants --connector NAME")
			}
			return eachDesk(cmd, &chosen, func(ctx context.Context, d *desk) error {
				return d.change(ctx, func(r *offsets.Record) (*offsets.Record, error) {
					return forget(r, d.cfg.SlotName, newHistory), nil
				})
			})
		},
	}
	chosen.flags(cmd)
	cmd.Flags().BoolVar(&newHistory, "new-history", false, "LSNs start anew: raise the history")
	return cmd
}

// forget returns the record of a connector that starts afresh: none, or only its history, which
// must never fall.
func forget(r *offsets.Record, slot string, newHistory bool) *offsets.Record {
	history := int64(0)
	if r != nil {
		history = r.History
	}
	if newHistory {
		history++
	}
	if history == 0 {
		return nil
	}
	return &offsets.Record{
		History: history, Slot: slot,
		Intent: &offsets.Intent{Kind: offsets.IntentCreate, Slot: slot},
	}
}

// change writes a changed record, with the guard that nobody is running: the slot is not in use,
// and whoever wrote before is fenced.
func (d *desk) change(
	ctx context.Context, edit func(*offsets.Record) (*offsets.Record, error),
) error {
	slot, err := d.src.Slot(ctx, d.cfg.SlotName)
	if err != nil {
		return err
	}
	if slot != nil && slot.Active {
		return fault.New(fault.SlotInUse, "connector "+d.cfg.Name+" is running").
			With(fmt.Sprintf("slot %s active for PID %d", slot.Name, slot.ActivePID),
				"a connector that is stopped", "stop it first")
	}
	if err := d.store.Fence(ctx); err != nil {
		return err
	}
	rec, err := d.store.Load(ctx)
	if err != nil {
		return err
	}
	if rec, err = edit(rec); err != nil {
		return err
	}
	if rec == nil {
		return d.store.Reset(ctx)
	}
	rec.TsUsec = time.Now().UnixMicro()
	return d.store.Save(ctx, *rec)
}
