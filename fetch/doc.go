// Package fetch turns records into bytes.
//
// A Source knows where its records stand; an index, made once per version of
// the source, is the table of them. A Dataset joins the two and is the only
// way to the bytes: it bounds every request, notices a source that changed,
// survives one that was truncated under it, and counts.
package fetch
