package connector

// State is where a connector's life stands. Only Connector.Run moves it.
//
//	starting --> snapshot --> streaming --> stopped     (asked to stop)
//	   ^  |         |             |
//	   |  +---------+-------------+--> failed           (a person must act)
//	   |            |             |
//	   +-- waiting <+-------------+                     (back-off before the next session)
type State string

// The states.
const (
	StateStarting  State = "starting"
	StateSnapshot  State = "snapshot"
	StateStreaming State = "streaming"
	StateWaiting   State = "waiting"
	StateStopped   State = "stopped"
	StateFailed    State = "failed"
)

// States lists them all, for the metric that has one series a state.
var States = []string{
	string(StateStarting), string(StateSnapshot), string(StateStreaming),
	string(StateWaiting), string(StateStopped), string(StateFailed),
}
