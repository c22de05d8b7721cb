/** Tells whoever listens, in this process, that something has happened; says nothing about what. */
export type Signal = {
  notify(): void
  /** Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void
}

export function createSignal(): Signal {
  const listeners = new Set<() => void>()
  return {
    notify() {
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
