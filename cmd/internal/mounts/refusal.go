package mounts

import "fmt"

// A refusal has its own words and one of meta's errors as its kind.
type refusal struct {
	text string
	kind error
}

func (e refusal) Error() string { return e.text }

func (e refusal) Unwrap() error { return e.kind }

func refuse(kind error, format string, args ...any) error {
	return refusal{fmt.Sprintf(format, args...), kind}
}
