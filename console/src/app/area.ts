// Type of the modules in areas/: the screens of an area by name.
import type { ComponentChild } from 'preact'
import type { Route } from './paths.ts'

export type Screens = Record<string, (route: Route) => ComponentChild>
