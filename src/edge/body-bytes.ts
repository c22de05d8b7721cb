// Limits on the bytes of request bodies in memory. REST, gRPC, the registry and all other entry points share them.
import type { App } from '#app.ts'
import { type ByteBudget, createByteBudget, type HeldBytes } from '#lib/net/byte-budget.ts'

/** Maximum size of a body from a client that is not authenticated yet, such as a form. */
export const maxAnonymousBytes = 64 * 1024

/** Request whose body is counted. `transport` is the name of the entry point, for the metric of refused requests. */
export type CountedRequest = { source: string; transport: string; isAnonymous: boolean }

export type BodyBytes = {
  /** Counts the body of a request from now on. The caller must release the bytes when the request ends. */
  open(request: CountedRequest): HeldBytes
  /** Counts the buffers of an upload. An upload above its limits is not refused: it is written in smaller pieces. */
  openUpload(source: string): HeldBytes
}

/**
 * Creates the limits of one server. Bodies without a token, and uploads of blobs, have limits of their own. So they take no space
 * from other requests.
 */
export function createBodyBytes({ config, metrics }: Pick<App, 'config' | 'metrics'>): BodyBytes {
  const { maxBodyBytes, messageBytesPerSource, messageBytes } = config
  const onChange = (bytes: number): void => metrics.bodyBytes.inc(bytes)
  const budgetOf = (perSource: number, total: number, largest: number): ByteBudget => {
    // A compressed message and its content can be in memory at the same time.
    const most = Math.max(perSource, 2 * largest + 64 * 1024)
    return createByteBudget({ perSource: most, total: Math.max(total, most) }, onChange)
  }
  const ofTokens = budgetOf(messageBytesPerSource, messageBytes, maxBodyBytes)
  const ofAnonymous = budgetOf(messageBytesPerSource / 4, messageBytes / 4, Math.min(maxAnonymousBytes, maxBodyBytes))
  const ofUploads = createByteBudget({ perSource: messageBytesPerSource / 2, total: messageBytes / 2 }, onChange)
  return {
    openUpload: (source) => ofUploads.open(source),
    open: ({ source, transport, isAnonymous }) =>
      (isAnonymous ? ofAnonymous : ofTokens).open(source, () => metrics.bodyRefusals.inc({ transport })),
  }
}
