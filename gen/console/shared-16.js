function s(o){let e=new Set;return o.map(n=>{let t=n;for(let r=2;e.has(t);r++)t=`${n} (${r})`;return e.add(t),t})}export{s as a};
