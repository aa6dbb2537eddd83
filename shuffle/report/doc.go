// Package report answers one question: what is a person told of a stage?
package report
