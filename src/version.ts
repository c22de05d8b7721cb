import { readAsset } from '#lib/files/assets.ts'

/** Version of this build. */
export const version: string = (JSON.parse(readAsset('package.json').toString()) as { version: string }).version
