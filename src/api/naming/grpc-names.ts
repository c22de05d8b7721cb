// Names of methods over gRPC: our own names, those of the preview, and those of a vendor.
import type { IncomingHttpHeaders } from 'node:http2'

/** Metadata key that marks calls with a vendor's name. A value from a client has no effect. */
export const vendorTag = 'x-pinfold-vendor'

/**
 * Creates a function that replaces the path of a call by that of the contract. The function marks calls with the vendor's name.
 */
export function createPathReader(token: string | undefined): (headers: IncomingHttpHeaders) => void {
  if (token === undefined) {
    return (headers) => {
      headers[':path'] = stablePath(headers[':path'] ?? '')
    }
  }
  const prefix = `/${token}.platform.`
  return (headers) => {
    const path = headers[':path'] ?? ''
    const isVendors = path.startsWith(prefix)
    headers[':path'] = stablePath(isVendors ? `/pinfold.platform.${path.slice(prefix.length)}` : path)
    headers[vendorTag] = isVendors ? '1' : '0'
  }
}

/** Replaces the preview's packages `v2beta1` by `v2`, as in paths over REST. */
function stablePath(path: string): string {
  if (!path.includes('.v2beta1.')) return path
  return path.replace(/^(\/pinfold\.platform\.[a-z]+)\.v2beta1\./, '$1.v2.')
}

/** Name of a version 2 type in the preview packages. */
export function previewTypeName(typeName: string): string {
  return typeName.replace(/^(pinfold\.platform\.[a-z]+)\.v2\./, '$1.v2beta1.')
}

/** True for the content type of the gRPC protocol. False for related protocols, such as application/grpc-web. */
export function isGrpcType(contentType = ''): boolean {
  return /^application\/grpc(?:\+proto)?\s*(?:;|$)/.test(contentType)
}
