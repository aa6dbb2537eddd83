package views

import (
	"fmt"
	"strings"

	"rankfs/meta"
)

// Called is the shortest name of a view, and the one with all options. If its dataset is
// gone, both are as it was called.
func (vs *Views) Called(view string) (short, full string) {
	if v, d, err := vs.Resolve(view); err == nil {
		return v.Short(d.Default), v.String()
	}
	return view, view
}

// JobName is the name of a view in the account of waits, whatever its epoch. It is a name
// of the view.
func JobName(v, own meta.View) string {
	v.Epoch, own.Epoch = 0, 0
	return v.Short(own)
}

// JobCalled is Called of a job: without the epoch.
func (vs *Views) JobCalled(job string) (short, full string) {
	if v, _, err := vs.Resolve(job); err == nil {
		return job, strings.Replace(v.String(), fmt.Sprintf("@epoch=%d,", v.Epoch), "@", 1)
	}
	return job, job
}
