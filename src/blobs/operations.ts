// What is asked of a bucket, and how that ends: the words of the metrics.

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
 * How a try ended: `retried` and `away` could not be had, for now; `refused` will not be, such as for credentials that are
 * not right. `busy` got no connection in time, and was not asked.
 */
export const results = ['ok', 'missing', 'retried', 'away', 'refused', 'busy'] as const
export type Observe = (operation: Operation, result: (typeof results)[number], seconds: number) => void
