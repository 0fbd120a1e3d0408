package main

import (
	"slices"
)

// series are the runs of one thing.
type series []run

// by returns the runs' values in rising order.
func (s series) by(value func(run) float64) []float64 {
	out := make([]float64, 0, len(s))
	for _, r := range s {
		out = append(out, value(r))
	}
	slices.Sort(out)
	return out
}

// median is the middle of the runs' values, 0 for none.
func (s series) median(value func(run) float64) float64 {
	v := s.by(value)
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func seconds(r run) float64 { return r.Seconds }
func cpu(r run) float64     { return r.CPU }
func rss(r run) float64     { return float64(r.RSS) }
func started(r run) float64 { return r.Started }

// rate returns rows a second at the minimum, median and maximum.
func (s series) rate(rows int) (least, middle, most float64) {
	v := s.by(seconds)
	if len(v) == 0 {
		return 0, 0, 0
	}
	n := float64(rows)
	return n / v[len(v)-1], n / s.median(seconds), n / v[0]
}
