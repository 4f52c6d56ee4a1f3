package auditsink

// nonBlocking has no meaning here.
const nonBlocking = 0
