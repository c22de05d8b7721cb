// Texts of all screens. Texts of a single area are in the modules of words/, so that its script contains them.
import { frame } from './words/frame.ts'
import { shared } from './words/shared.ts'

export { numbers } from './words/format.ts'

export const words = { ...shared, ...frame }
