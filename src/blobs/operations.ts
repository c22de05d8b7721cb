// Operations on a bucket and results of requests, as labels of the metrics.

export const operations = [
  'PutObject',
  'GetObject',
  'HeadObject',
  'DeleteObject',
  'DeleteObjects',
  'ListObjects',
  'CreateMultipartUpload',
  'UploadPart',
  'CompleteMultipartUpload',
  'AbortMultipartUpload',
  'ListMultipartUploads',
] as const
export type Operation = (typeof operations)[number]

/**
 * Result of one attempt. `retried`: failed, and is tried again. `away`: the last attempt failed, so the bucket is unavailable.
 * `refused`: permanent, for example because of wrong credentials. `busy`: not sent, since no connection became free in time.
 */
export const results = ['ok', 'missing', 'retried', 'away', 'refused', 'busy'] as const
export type Observe = (operation: Operation, result: (typeof results)[number], seconds: number) => void
