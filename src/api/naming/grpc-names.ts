// By which names a method can be called over gRPC: ours, those of the preview, and those of a vendor.
import type { IncomingHttpHeaders } from 'node:http2'

/** The metadata that says of a call that it came by the vendor's name; what a client sends under this name is not believed. */
export const vendorTag = 'x-pinfold-vendor'

/** Turns the path of a call into that of the contract, and notes by whose name it came. */
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

/** The preview's packages `v2beta1` mean `v2`, as its paths do over REST. */
function stablePath(path: string): string {
  if (!path.includes('.v2beta1.')) return path
  return path.replace(/^(\/pinfold\.platform\.[a-z]+)\.v2beta1\./, '$1.v2.')
}

/** What the preview calls a type of version 2. */
export function previewTypeName(typeName: string): string {
  return typeName.replace(/^(pinfold\.platform\.[a-z]+)\.v2\./, '$1.v2beta1.')
}
