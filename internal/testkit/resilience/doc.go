// Package resilience tests the whole flow over the adapters of real forges while the network and the server misbehave:
// at each request of a proposal, in each way. It has no code of its own.
package resilience
