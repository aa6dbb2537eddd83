// Package forecast answers how long epochs of a view would take on other machines,
// and what ranks would wait for there: Options become a Job, a Job is completed by
// what the daemon knows, and simulated.
package forecast
