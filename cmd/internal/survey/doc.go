// Package survey answers one question: what would the ranks of a view read from where?
//
// It counts batches of a plan, step by step, for a person to judge the plan by.
package survey
