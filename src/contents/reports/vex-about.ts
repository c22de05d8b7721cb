// Finds the parts of an image that a VEX statement is about.
import type { VexStatement } from './vex-statement.ts'

/**
 * `image` is true if the statement is about the whole image. `parts` has the named parts of the image. If the statement is only
 * about other images, `image` is false and `parts` is empty.
 */
export type AboutImage = { image: boolean; parts: string[] }

/**
 * Finds the parts of an image in a statement. `digests` are the digests that can name the image: its own digest, and the digest
 * of an index that lists it. A product without an image is a part of this image. Parts of an image without a digest are parts of
 * another image.
 */
export function aboutImage(
  { products, within = [] }: Pick<VexStatement, 'products' | 'within'>,
  ...digests: readonly string[]
): AboutImage {
  const about: AboutImage = { image: products.length === 0, parts: [] }
  for (const [i, product] of products.entries()) {
    const whole = within[i] ?? ''
    if (whole !== '') {
      if (digests.includes(digestIn(whole))) about.parts.push(product)
    } else if (/^pkg:(?:oci|docker)\//.test(product) || digestIn(product) !== '') {
      if (digests.includes(digestIn(product))) about.image = true
    } else about.parts.push(product)
  }
  return about
}

/** Digest in a package URL or in another reference. The colon can be escaped, as in package URLs. */
function digestIn(name: string): string {
  return /@(sha\d+:[0-9a-f]+)(?:[?#]|$)/.exec(name.replaceAll(/%3a/gi, ':'))?.[1] ?? ''
}
