/* A worker that starts and never says a word. */
self.onmessage = () => {};
