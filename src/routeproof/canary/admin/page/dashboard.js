"use strict";
const $=id=>document.getElementById(id);
const NBSP="\u00a0",NS="http://www.w3.org/2000/svg";
const POINTS=240;
let history_=[],lastAudit=0,known=[];
const key=()=>sessionStorage.getItem("routeproof-key")||"";
const heads=()=>key()?{authorization:"Bearer "+key()}:{};
const pct=x=>x==null?"–":(100*x).toFixed(x!==0&&x<0.1?2:1)+NBSP+"%";
const sec=x=>x==null?"–":x<1?(1000*x).toFixed(0)+NBSP+"ms":x.toFixed(2)+NBSP+"s";
const plain=name=>name.replaceAll("_"," ");
const clock=at=>new Date(1000*at).toLocaleTimeString([],{hour:"2-digit",minute:"2-digit"});

function put(parent,tag,text,cls){
  const e=document.createElement(tag);
  if(text!=null)e.textContent=text;
  if(cls)e.className=cls;
  parent.append(e);
  return e}
function cell(row,text,label,cls){const td=put(row,"td",text,cls);if(label)td.dataset.label=label;return td}
function fail(text){$("error").textContent=text||""}

async function call(method,path,body){
  const r=await fetch(path,{method,headers:{...heads(),"content-type":"application/json"},body:body?JSON.stringify(body):undefined});
  if(r.status===401){$("login").hidden=false;throw new Error("a valid admin key is needed")}
  const data=await r.json();
  if(!r.ok)throw new Error(data.error||r.status);
  return data}

/* --- charts ------------------------------------------------------------------ */
function svg(parent,cls,width,height,label){
  const s=document.createElementNS(NS,"svg");
  s.setAttribute("viewBox",`0 0 ${width} ${height}`);
  s.setAttribute("class",cls);
  s.setAttribute("preserveAspectRatio","none");
  s.setAttribute("role","img");
  s.setAttribute("aria-label",label);
  parent.append(s);
  return s}
function stroke(s,d,color,width,dash){
  const p=document.createElementNS(NS,"path");
  p.setAttribute("d",d);p.setAttribute("fill","none");p.setAttribute("stroke",color);
  p.setAttribute("stroke-width",width);p.setAttribute("vector-effect","non-scaling-stroke");
  if(dash)p.setAttribute("stroke-dasharray",dash);
  s.append(p)}
function line(points,x,y){
  let d="",drawing=false;
  for(const p of points){const v=y(p);
    if(v==null){drawing=false;continue}
    d+=(drawing?"L":"M")+x(p).toFixed(1)+" "+v.toFixed(1);drawing=true}
  return d}
function across(width){
  const first=history_.length?history_[0].at_s:0,last=history_.length?history_[history_.length-1].at_s:1;
  return p=>width*(p.at_s-first)/Math.max(1e-9,last-first)}
function curve(parent,s){
  const W=240,H=56,top=8,zero=H-8;
  const harm=s.harm_log_e/s.harm_at,safe=s.safe_log_e/s.safe_at;
  const g=svg(parent,"curve",W,H,`harm at ${pct(harm)} of what rolls back, safety at ${pct(safe)} of what is needed`);
  const y=i=>p=>p.log_e[s.name]?zero-(zero-top)*Math.max(-0.12,Math.min(1.12,p.log_e[s.name][i])):null;
  stroke(g,`M0 ${zero}H${W}`,"var(--line)",1);
  stroke(g,`M0 ${top}H${W}`,"var(--soft)",1,"2 3");
  const x=across(W);
  stroke(g,line(history_,x,y(1)),"var(--good)",1.8,"5 3");
  stroke(g,line(history_,x,y(0)),"var(--bad)",2.2)}
function shareChart(status){
  const box=$("share-chart");box.replaceChildren();
  const W=400,H=110,base=H-4,top=6;
  const most=Math.max(0.02,...history_.map(p=>Math.max(p.weight,p.share||0)))*1.08;
  const g=svg(box,"share",W,H,`weight ${pct(status.weight)}, observed share ${pct(status.observed_share)}`);
  const y=v=>base-(base-top)*v/most,x=across(W);
  stroke(g,`M0 ${base}H${W}`,"var(--line)",1);
  stroke(g,`M0 ${top}H${W}`,"var(--line)",1,"2 3");
  stroke(g,line(history_,x,p=>p.share==null?null:y(p.share)),"var(--canary)",1.6,"5 3");
  stroke(g,line(history_,x,p=>y(p.weight)),"var(--accent)",2.2);
  if(history_.length>1)put(box,"div",`top line ${pct(most/1.08)} · ${clock(history_[0].at_s)} to ${clock(history_[history_.length-1].at_s)}`,"soft small")}

const MAY={ready:["start"],stepping:["pause","promote"],held:["pause","promote"],
  paused:["resume","promote"],rolled_back:["retry"]};

/* --- sections ---------------------------------------------------------------- */
function showState(s){
  $("name").textContent=s.labels.canary+" against "+s.labels.baseline;
  document.title=plain(s.state.phase)+" · "+s.labels.canary;
  const p=$("phase");p.textContent=plain(s.state.phase);p.className="badge "+s.state.phase;
  $("reason").textContent=s.state.reason;
  $("weight").textContent=pct(s.weight);$("share").textContent=pct(s.observed_share);
  $("took").textContent=sec(s.rollback_s);$("zero").textContent=sec(s.share_zero_s);
  const can=MAY[s.state.phase]||[];
  $("rollback").disabled=s.state.phase==="rolled_back";
  for(const b of document.querySelectorAll("[data-command]")){
    const name=b.dataset.command;
    b.disabled=!can.includes(name);
    if(name==="retry")b.hidden=b.disabled;
    if(name==="start")b.hidden=s.state.phase==="rolled_back"}
  $("stale").textContent=[s.blind&&"no one sees, so the candidate gets nothing: "+s.blind,s.stale&&s.stale!==s.blind&&"evidence is stale: "+s.stale,s.store_error].filter(Boolean).join(" · ");
  const steps=$("steps");steps.replaceChildren();
  s.steps.forEach((w,i)=>{
    const is=s.state.phase==="promoted"||i<s.state.step?"done":i===s.state.step&&s.weight>0?"now":"";
    const li=put(steps,"li",pct(w),is);
    if(is==="now")li.setAttribute("aria-current","step")});
  shareChart(s)}

const GROUPS=[["live answers",g=>!g.is_paired],["shadow pairs: the same prompt on both arms",g=>g.is_paired]];
function showSignals(s){
  const body=$("signals");body.replaceChildren();
  for(const [title,belongs] of GROUPS){
    const rows=s.signals.filter(belongs);
    if(!rows.length)continue;
    const head=put(body,"tr",null,"group"),th=put(head,"th",title);th.colSpan=5;th.scope="colgroup";
    for(const g of rows)signalRow(body,g)}
  known=s.signals.map(g=>g.name)}
function signalRow(body,g){
  const tr=put(body,"tr"),n=cell(tr,plain(g.name.replace("shadow.","")),null);
  put(n,"div",g.is_advisory?"shown only":g.is_required?"required":"can roll back","soft small");
  const o=cell(tr);put(o,"span",plain(g.outcome),"badge "+g.outcome);
  put(o,"div",g.reason,"soft small why");
  for(const arm of ["control","canary"]){
    const word=g.is_paired?"worse, "+arm:"bad, "+arm;
    cell(tr,pct(g[arm+"_share"])+" of"+NBSP+g[arm+"_seen"],word)}
  curve(cell(tr,null,"evidence","full"),g)}

const MINOR=new Set(["slow","slow_first_token"]);
function showSlices(s){
  const names=[...new Set(s.slices.flatMap(r=>Object.keys(r.bad)))].filter(n=>!MINOR.has(n)&&s.slices.some(r=>r.bad[n]&&r.bad[n][0]>0));
  const head=$("slices-head");head.replaceChildren();
  const top=put(head,"tr");
  for(const t of ["slice","arm"])put(top,"th",t).scope="col";
  for(const t of ["answers","drafts rejected","accepted length",...names.map(plain)]){const th=put(top,"th",t,"n");th.scope="col"}
  const body=$("slices");body.replaceChildren();
  let before="";
  for(const r of s.slices){
    const tr=put(body,"tr");
    cell(tr,r.slice===before?"":r.slice,null,"full");before=r.slice;
    cell(tr,r.arm,null,r.arm);
    cell(tr,r.n,"answers","n");cell(tr,pct(r.rejected_share),"drafts rejected","n");
    cell(tr,r.accepted_length==null?"–":r.accepted_length.toFixed(2),"accepted length","n");
    for(const n of names){const b=r.bad[n];cell(tr,b?pct(b[0]/b[1]):"–",plain(n),"n")}}
  if(!s.slices.length)cell(put(body,"tr"),"no answer was tasted yet",null,"soft full")}

function showLatency(s){
  const body=$("latency");body.replaceChildren();
  let before="";
  for(const r of s.latency){
    const tr=put(body,"tr");
    cell(tr,r.metric===before?"":r.metric,null,"full");before=r.metric;
    cell(tr,r.arm,null,r.arm);cell(tr,r.n,"answers","n");
    for(const p of ["p50","p90","p95","p99"])cell(tr,sec(r[p]),p,"n")}
  if(!s.latency.length)cell(put(body,"tr"),"no answer was tasted yet",null,"soft full")}

function showInner(s){
  const box=$("inner");box.replaceChildren();
  const say=(name,value)=>{put(box,"dt",name);put(box,"dd",value)};
  const arms=o=>["control","canary"].map(a=>a+" "+(o[a]||0)).join(", ");
  const all=o=>Object.entries(o).map(([k,v])=>plain(k)+" "+v).join(", ")||"none yet";
  say("answers taken",arms(s.samples));say("dropped",arms(s.dropped));if(s.spared)say("over a caller's limit",s.spared);say("oldest unscored",sec(s.lag_s));
  say("shadow pairs",s.shadow?`${s.shadow.waiting} waiting; ${all(s.shadow.counts)}`:"off");
  const asked=Object.entries(s.asked.counts);
  say("asked about",asked.length?asked.map(([n,a])=>plain(n.replace("shadow.","pairs, "))+": "+arms(a)).join("; "):"nobody is asked");
  if(asked.length)say("not asked",`over budget ${arms(s.asked.over_budget)}; no room ${arms(s.asked.dropped)}`);
  say("OTLP",s.otlp?`sent ${all(s.otlp.sent)}; lost ${all(s.otlp.lost)}${s.otlp.problem?"; "+s.otlp.problem:""}`:"off");
  const replies=s.requests.map(r=>`${r.arm} ${r.status}: ${r.n}`).join(", ");
  say("requests",replies||"none yet")}

/* --- samples and audit -------------------------------------------------------- */
function answer(parent,side,arm,extra){
  const d=put(parent,"div",null,"answer");
  const bad=Object.entries(side.signals||{}).filter(([,v])=>v).map(([k])=>plain(k));
  const top=put(d,"div",null,"small soft");
  put(top,"b",arm,arm);top.append(" · "+side.record.answer.outcome+(extra?" · "+extra:""));
  if(bad.length){top.append(" · ");put(top,"span",bad.join(", "),"bad")}
  const text=put(d,"pre",side.record.answer.text||side.record.answer.tool_calls||"(no text)");
  text.tabIndex=0;return d}
function askedFor(x){
  const last=(x.prompt||[]).filter(m=>m.role==="user").pop();
  return last?(typeof last.content==="string"?last.content:JSON.stringify(last.content)):null}
function showSamples(rows){
  const box=$("answers");box.replaceChildren();
  for(const x of rows.filter(x=>x.shadow)){
    const said=askedFor(x),pref=x.shadow.preference;
    put(box,"div",[said&&"“"+said.slice(0,200)+"”",pref!=null&&"the judge prefers the canary "+pref].filter(Boolean).join(" · ")||"one prompt, both arms","pair soft small");
    const sides={[x.arm]:x,[x.shadow.arm]:x.shadow};
    for(const arm of ["control","canary"])answer(box,sides[arm],arm,arm===x.arm?"live":"replay")}
  const alone=rows.filter(x=>!x.shadow);
  const arms=["control","canary"].map(a=>alone.filter(x=>x.arm===a).slice(0,8));
  for(let i=0;i<Math.max(arms[0].length,arms[1].length);i++)
    for(const [at,arm] of ["control","canary"].entries())
      if(arms[at][i])answer(box,arms[at][i],arm);else put(box,"div");
  if(!rows.length)put(box,"p","none","soft")}
function filters(){
  const box=$("filter");
  for(const name of known){
    const value="bad="+name;
    if(!name.startsWith("shadow.")&&![...box.options].some(o=>o.value===value)){
      const o=put(box,"option","bad: "+plain(name));o.value=value}}}
async function refreshSamples(){
  if(!$("samples").open)return;
  filters();
  const q=$("filter").value;
  showSamples(await call("GET","/v1/samples?limit=16"+(q?"&"+q:"")))}
async function refreshAudit(){
  for(const a of await call("GET","/v1/audit?since="+lastAudit)){
    lastAudit=a.sequence;
    const tr=document.createElement("tr");
    cell(tr,new Date(1000*a.at_s).toLocaleString(),"when");cell(tr,a.actor,"who");
    cell(tr,plain(a.action),"what");cell(tr,a.reason,"why");
    const numbers=Object.entries(a.numbers).filter(([,v])=>v!=null);
    const td=cell(tr,null,"numbers","full small numbers");
    if(numbers.length){
      const d=put(td,"details");put(d,"summary",numbers.length+(numbers.length===1?" number":" numbers"));
      put(d,"div",numbers.map(([k,v])=>`${k} ${typeof v==="number"?+v.toFixed(4):v}`).join(", "))}
    $("audit").prepend(tr)}}
async function refreshHistory(){
  const last=history_.length?history_[history_.length-1].at_s:0;
  history_=history_.concat(await call("GET","/v1/history?since="+last));
  if(history_.length>2*POINTS)history_=history_.filter((_,i)=>i%2===0||i===history_.length-1)}

function show(s){showState(s);showSignals(s);showSlices(s);showLatency(s);showInner(s)}
async function side(){
  try{await refreshHistory();await refreshAudit();await refreshSamples()}
  catch(e){fail(e.message)}}

/* --- live -------------------------------------------------------------------- */
async function live(){
  try{
    const r=await fetch("/v1/live",{headers:heads()});
    if(r.status===401){$("login").hidden=false;$("link").textContent="sign in";return}
    $("login").hidden=true;fail("");
    await side();
    const reader=r.body.pipeThrough(new TextDecoderStream()).getReader();
    let held="",n=0;
    for(;;){
      const {value,done}=await reader.read();
      if(done)break;
      held+=value;
      let at;
      while((at=held.indexOf("\n\n"))>=0){
        show(JSON.parse(held.slice(6,at)));$("link").textContent="live";
        held=held.slice(at+2);
        if(++n%3===0)side()}}
  }catch(e){fail("connection lost")}
  $("link").textContent="reconnecting";
  setTimeout(live,1500)}

document.querySelector("#login form").addEventListener("submit",e=>{
  e.preventDefault();sessionStorage.setItem("routeproof-key",$("key").value);$("key").value="";live()});
async function command(name){
  try{fail("");await call("POST","/v1/"+name,{actor:"dashboard",reason:$("why").value});await refreshAudit()}
  catch(e){fail(e.message)}}
document.querySelectorAll("[data-command]").forEach(b=>b.addEventListener("click",()=>{
  if(b.dataset.sure&&!b.dataset.asked){
    const text=b.textContent;
    b.dataset.asked="1";b.textContent=b.dataset.sure;
    setTimeout(()=>{delete b.dataset.asked;b.textContent=text},4000);
    return}
  command(b.dataset.command)}));
$("rollback").addEventListener("click",()=>command("rollback"));
$("samples").addEventListener("toggle",()=>refreshSamples().catch(e=>fail(e.message)));
$("filter").addEventListener("change",()=>refreshSamples().catch(e=>fail(e.message)));
live();
