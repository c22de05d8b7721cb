import { AsyncLocalStorage } from 'node:async_hooks'

/** Notifies listeners in this process that something has happened. A signal carries no data. */
export type Signal = {
  notify(): void
  /** Adds a listener. Returns a function that removes it. */
  subscribe(listener: () => void): () => void
}

export function createSignal(): Signal {
  const listeners = new Set<() => void>()
  return {
    notify() {
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      // Listeners run outside of the request's async context, since their work is not part of the request and may take long.
      const apart = AsyncLocalStorage.bind(listener)
      listeners.add(apart)
      return () => void listeners.delete(apart)
    },
  }
}
