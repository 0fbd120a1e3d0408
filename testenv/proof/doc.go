// Package proof runs the connector as its users do, as a process of its own, under a workload, and
// kills it. The rig in it builds the command, starts and kills it; the tests are the stages that
// need processes: kills on an in-process broker, and the real broker (TestReal).
package proof
