// Handlers that the measured server has called. The guard compares them with the handler that an input is for.

import { fullNameOf } from '#api/methods.ts'
import { services } from '#api/services.ts'
import type { Handler, StreamHandler } from '#app.ts'
import { handlers as registryHandlers } from '#oci/routes.ts'

/** Name of a handler of the registry, as in the metrics. */
export const registryHandler = (verb: string, kind: string): string => `registry ${verb} ${kind}`

/** True if the registry has a handler for this verb of a kind. */
export function hasRegistryHandler(verb: string, kind: string): boolean {
  const byVerb: Record<string, unknown> | undefined = (registryHandlers as Record<string, Record<string, unknown>>)[
    kind
  ]
  return byVerb?.[verb] !== undefined
}

/** Wraps all handlers. Call it before the server starts. Returns a function that returns the names of handlers called since. */
export function noteHandlers(): () => string[] {
  let called = new Set<string>()
  const noted = <T extends (...args: never[]) => unknown>(name: string, handler: T): T =>
    ((...args: Parameters<T>) => {
      called.add(name)
      return handler(...args)
    }) as T
  for (const { desc, handlers } of services) {
    for (const method of desc.methods) {
      const handler: Handler | StreamHandler | undefined = handlers[method.localName]
      if (handler) handlers[method.localName] = noted(fullNameOf(method), handler as never)
    }
  }
  for (const [kind, byVerb] of Object.entries(registryHandlers)) {
    for (const [verb, handler] of Object.entries(byVerb)) byVerb[verb] = noted(registryHandler(verb, kind), handler)
  }
  return () => {
    const names = [...called]
    called = new Set()
    return names
  }
}
