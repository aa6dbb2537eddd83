// Package sourcetest is the conformance suite that every source must pass.
package sourcetest
