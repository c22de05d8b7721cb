/** One of the images behind a digest: for one architecture, with a manifest of its own. */
export type ImageVariant = { architecture: string; digest: string }

export const imageType = 'registry.pinfold.dev/Image'

/** Configurations are some kilobytes; what is larger is something else. */
export const maxConfigBytes = 4 * 1024 * 1024

/** An index may list indexes; deeper than this nobody looks for images. */
export const maxIndexDepth = 3
