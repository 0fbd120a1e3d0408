package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// inflict makes a fault and heals it; what says how it went, for the history.
func (r *round) inflict(ctx context.Context, p plan) (what string, err error) {
	held := ", " + p.hold.String()
	switch p.kind {
	case killConnector:
		r.rig.Kill()
		return "", r.startConnector()
	case stopConnector:
		return r.orderedStop()
	case freezeConnector:
		r.rig.Process().Signal(syscall.SIGSTOP)
		err := sleep(ctx, p.hold)
		r.rig.Process().Signal(syscall.SIGCONT)
		return held, err
	case secondProcess:
		return r.second(ctx)
	case takeOver:
		return "", r.takeOver(ctx)
	case killBroker:
		return held, r.down(ctx, p.hold, r.kafka.Kill, r.kafka.Start)
	case killRegistry:
		return held, r.down(ctx, p.hold, func(...int) error { return r.registry.Kill() },
			func(ctx context.Context, _ ...int) error { return r.registry.Start(ctx) })
	case killServer:
		r.sampler.ServerCrashed()
		return held, r.down(ctx, p.hold, func(...int) error { return r.postgres.Kill() },
			func(ctx context.Context, _ ...int) error { return r.postgres.Start(ctx) })
	case restartNow:
		r.sampler.ServerCrashed()
		return "", r.restart(ctx, "immediate")
	case restartFast:
		began := time.Now()
		err := r.restart(ctx, "fast")
		return ", took " + time.Since(began).Round(100*time.Millisecond).String(), err
	case cutBroker:
		return held, r.cut(ctx, r.toKafka, p.hold)
	case cutServer:
		return held, r.cut(ctx, r.toServer, p.hold)
	case stallBroker:
		return held, r.stall(ctx, r.toKafka, p.hold)
	case stallServer:
		return held, r.stall(ctx, r.toServer, p.hold)
	case resetServer:
		r.toServer.ResetAll()
		return "", nil
	case endWalsender:
		r.endWalsender(ctx)
		return "", nil
	}
	return "", fmt.Errorf("no such fault: %s", p.kind)
}

// down kills a server and starts it again after a while.
func (r *round) down(
	ctx context.Context, hold time.Duration, kill func(...int) error,
	start func(context.Context, ...int) error,
) error {
	if err := kill(); err != nil {
		return err
	}
	if err := sleep(ctx, hold); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, serverLimit)
	defer cancel()
	return start(ctx)
}

func (r *round) restart(ctx context.Context, mode string) error {
	ctx, cancel := context.WithTimeout(ctx, serverLimit)
	defer cancel()
	return r.postgres.Restart(ctx, mode)
}

func (r *round) cut(ctx context.Context, p *testenv.Proxy, hold time.Duration) error {
	p.Cut()
	err := sleep(ctx, hold)
	return errors.Join(err, p.Heal())
}

func (r *round) stall(ctx context.Context, p *testenv.Proxy, hold time.Duration) error {
	p.Stall(testenv.BothWays)
	err := sleep(ctx, hold)
	p.Resume()
	return err
}

func (r *round) endWalsender(ctx context.Context) {
	r.scalar(ctx, "SELECT pg_terminate_backend(active_pid)::text FROM pg_replication_slots "+
		"WHERE slot_name = '"+r.rig.Slot()+"' AND active")
}

// orderedStop ends the connector as an operator does, which has to succeed.
func (r *round) orderedStop() (what string, err error) {
	began := time.Now()
	if err := r.rig.Process().Stop(stopLimit); err != nil {
		r.wrong("an ordered stop: %v", err)
	}
	what = ", ended after " + time.Since(began).Round(100*time.Millisecond).String()
	return what, r.startConnector()
}

// second starts another process of the same connector: it has to give up, and the first one has to
// go on as if nothing were.
func (r *round) second(ctx context.Context) (what string, err error) {
	second, err := r.rig.StartSecond(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	err = second.Wait(takeoverLimit + stopLimit)
	if status := exitStatus(err); status != statusSetUp {
		r.wrong("a second process: %v, not exit status %d", err, statusSetUp)
	}
	return fmt.Sprintf(", gave up after %s", time.Since(began).Round(100*time.Millisecond)), nil
}

// takeOver lets the connector stand still until another process has its slot and goes on, and
// wakes it up: it has to end, and the other one to go on. Then the other one is killed too.
func (r *round) takeOver(ctx context.Context) error {
	frozen := r.rig.Process()
	r.sampler.Pause(true)
	defer r.sampler.Pause(false)
	frozen.Signal(syscall.SIGSTOP)
	other, err := r.rig.StartSecond(ctx)
	if err != nil {
		return err
	}
	defer other.Kill()
	r.endWalsender(ctx)
	if err := r.recover(ctx); err != nil {
		return err
	}
	frozen.Signal(syscall.SIGCONT)
	err = frozen.Wait(takeoverLimit + stopLimit)
	if status := exitStatus(err); status != statusFenced && status != statusSetUp {
		r.wrong("a process that was taken over: %v, neither fenced nor waiting in vain", err)
	}
	if ended, err := other.Ended(); ended {
		r.wrong("the process that took over ended: %v", err)
	}
	other.Kill()
	return r.startConnector()
}

// Exit statuses of the connector.
const (
	statusFenced = 1
	statusSetUp  = 3 // slot_in_use among them
)

// exitStatus is how a process ended; 0 also for those that a signal ended.
func exitStatus(err error) int {
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exit.ExitCode()
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
