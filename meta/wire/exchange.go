package wire

// An exchange is one request and its answer, and what is pushed between them.
type exchange struct {
	request Request
	feed    Feed // nil for a pull
	to      Sink
	heard   bool // something of the answer came
}
