import { AsyncLocalStorage } from 'node:async_hooks'

/** Notifies listeners in this process that something has happened, without details. */
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
      // Work that a request triggers is not part of that request, and may go on for long.
      const apart = AsyncLocalStorage.bind(listener)
      listeners.add(apart)
      return () => void listeners.delete(apart)
    },
  }
}
