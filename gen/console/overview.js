import{f as r}from"./shared-7.js";import"./shared-6.js";import"./shared-4.js";import"./shared-3.js";import{D as e}from"./shared-1.js";var t={home:()=>e(r,{})};export{t as screens};
