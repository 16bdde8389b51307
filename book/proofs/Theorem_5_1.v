(* Theorem 5.1: the deterministic lemmas of its proof, and what follows from it for a learned encoder.

   Formalized, for every sample in arbitrary sets:
   - the empirical HSIC is at most nu_Z nu_S, and at most a quarter of it for
     non-negative kernels;
   - changing one row moves it by at most 16 nu_Z nu_S / n, and by at most
     4 nu_Z nu_S / n for non-negative kernels (bounded differences);
   - the bracket l_ij + l_qr - 2 l_iq of the V-statistic is at most 4 nu_S, or
     2 nu_S for non-negative kernels;
   - a squared increment of k_Z is at most 2 nu_Z times the sum of the squared
     distances of the features;
   - on the event of Theorem 5.1 the bound holds for every encoder that is chosen
     from the same sample (Corollaries 5.2 and G.3, given the theorem).
   McDiarmid's inequality is formalized in McDiarmid.v. Not formalized: the bias,
   symmetrization and the comparison of Gaussian processes.
   As printed, the theorem is false for kernels with a large bound: the right
   factor of the last term is nu_S sqrt(nu_Z) l_Z. Nothing here depends on it. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite Sample.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Features.
Variables (R : realFieldType) (n d e : nat).
Hypothesis n_gt0 : (0 < n)%N.
Let n1 : (0 : R) < n%:R. Proof. by rewrite ltr0n. Qed.
Let nn : n%:R != 0 :> R. Proof. by rewrite gt_eqF. Qed.

Lemma sum_recentered (a b : 'I_n -> R) :
  \sum_i recenter a i * recenter b i
  = \sum_i a i * b i - n%:R^-1 * (\sum_i a i) * (\sum_i b i).
Proof.
set A := \sum_i a i; set B := \sum_i b i; set P := \sum_i a i * b i.
have -> : \sum_i recenter a i * recenter b i
          = \sum_i (a i * b i - n%:R^-1 * B * a i - n%:R^-1 * A * b i + n%:R^-1 * A * (n%:R^-1 * B)).
  by apply: eq_bigr => i _; rewrite /recenter -/A -/B; ring.
rewrite big_split !sumrB /= -!mulr_sumr sumr_const card_ord -[B *+ n]mulr_natr -/A -/B -/P.
by field.
Qed.

(* The entries of the empirical cross-covariance of explicit features. *)
Definition cross (u : 'I_n -> 'I_d -> R) (v : 'I_n -> 'I_e -> R) (x : 'I_d * 'I_e) : R :=
  n%:R^-1 * \sum_i recenter (fun i => u i x.1) i * recenter (fun i => v i x.2) i.

Lemma crossE u v x :
  cross u v x = n%:R^-1 * (\sum_i u i x.1 * v i x.2)
                - n%:R^-1 * (\sum_i u i x.1) * (n%:R^-1 * \sum_i v i x.2).
Proof.
rewrite /cross sum_recentered mulrBr; congr (_ - _).
by set A := \sum_i _; set B := \sum_i _; ring.
Qed.

Lemma sum_recenter_sq (a : 'I_n -> R) : \sum_i recenter a i ^+ 2 <= \sum_i a i ^+ 2.
Proof.
under eq_bigr do rewrite expr2; rewrite sum_recentered; under [X in _ <= X]eq_bigr do rewrite expr2.
by rewrite ler_subl_addr ler_addl -mulrA mulr_ge0 ?invr_ge0 ?ler0n // -expr2 sqr_ge0.
Qed.

Lemma cross_norm u v nu mu :
  (forall i, \sum_a u i a ^+ 2 <= nu) -> (forall i, \sum_a v i a ^+ 2 <= mu) ->
  \sum_x cross u v x ^+ 2 <= nu * mu.
Proof.
move=> un vn.
have var m (w : 'I_n -> 'I_m -> R) c : (forall i, \sum_a w i a ^+ 2 <= c) ->
    n%:R^-1 * (\sum_a \sum_i recenter (fun i => w i a) i ^+ 2) <= c.
  move=> wc; rewrite ler_pdivr_mull //.
  apply: (@le_trans _ _ (\sum_a \sum_i w i a ^+ 2)).
    by apply: ler_sum => a _; exact: sum_recenter_sq.
  rewrite exchange_big; apply: le_trans (ler_sum _ (fun i _ => wc i)) _.
  by rewrite sumr_const card_ord mulr_natl.
have pos m (w : 'I_n -> 'I_m -> R) : 0 <= n%:R^-1 * (\sum_a \sum_i recenter (fun i => w i a) i ^+ 2).
  by rewrite mulr_ge0 ?invr_ge0 ?ler0n // sumr_ge0 // => a _; rewrite sumr_ge0 // => i _; exact: sqr_ge0.
apply: le_trans (ler_pmul (pos _ u) (pos _ v) (var _ _ _ un) (var _ _ _ vn)).
have -> : n%:R^-1 * (\sum_a \sum_i recenter (fun i => u i a) i ^+ 2)
          * (n%:R^-1 * (\sum_a \sum_i recenter (fun i => v i a) i ^+ 2))
        = \sum_(x : 'I_d * 'I_e) (n%:R ^+ 2)^-1 * ((\sum_i recenter (fun i => u i x.1) i ^+ 2)
                                                * (\sum_i recenter (fun i => v i x.2) i ^+ 2)).
  rewrite -mulr_sumr -(pair_big xpredT xpredT (fun a b => (\sum_i recenter (fun i => u i a) i ^+ 2)
                                     * (\sum_i recenter (fun i => v i b) i ^+ 2))) /=.
  by rewrite -big_distrlr /= mulrACA -invfM -expr2.
apply: ler_sum => x _; rewrite /cross exprMn exprVn; apply: ler_wpmul2l; first by rewrite invr_ge0 sqr_ge0.
exact: dot_sq.
Qed.

(* The two samples agree except in row i0. *)
Variable i0 : 'I_n.
Variables (u u' : 'I_n -> 'I_d -> R) (v v' : 'I_n -> 'I_e -> R).
Hypothesis same_u : forall i, i != i0 -> u i = u' i.
Hypothesis same_v : forall i, i != i0 -> v i = v' i.

(* The mean of the other rows. *)
Definition others m (w : 'I_n -> 'I_m -> R) (a : 'I_m) : R :=
  (n.-1)%:R^-1 * \sum_(i | i != i0) w i a.

Lemma cross_change x :
  cross u v x - cross u' v' x
  = (n.-1)%:R / n%:R ^+ 2
    * ((u i0 x.1 - others u x.1) * (v i0 x.2 - others v x.2)
       - (u' i0 x.1 - others u x.1) * (v' i0 x.2 - others v x.2)).
Proof.
rewrite !crossE /others.
have eu : \sum_(i | i != i0) u' i x.1 = \sum_(i | i != i0) u i x.1.
  by apply: eq_bigr => i ii; rewrite same_u.
have ev : \sum_(i | i != i0) v' i x.2 = \sum_(i | i != i0) v i x.2.
  by apply: eq_bigr => i ii; rewrite same_v.
have euv : \sum_(i | i != i0) u' i x.1 * v' i x.2 = \sum_(i | i != i0) u i x.1 * v i x.2.
  by apply: eq_bigr => i ii; rewrite same_u // same_v.
have split_sum (F : 'I_n -> R) : \sum_i F i = F i0 + \sum_(i | i != i0) F i by rewrite (bigD1 i0).
rewrite (split_sum (fun i => u i x.1 * v i x.2)) (split_sum (fun i => u' i x.1 * v' i x.2)).
rewrite (split_sum (fun i => u i x.1)) (split_sum (fun i => u' i x.1)).
rewrite (split_sum (fun i => v i x.2)) (split_sum (fun i => v' i x.2)) eu ev euv.
have nE : n%:R = (n.-1)%:R + 1 :> R by rewrite -{1}(prednK n_gt0) mulrSr.
have [n0|n0] := eqVneq ((n.-1)%:R : R) 0; last first.
  have nz : (n.-1)%:R + 1 != 0 :> R by rewrite -nE.
  rewrite nE; move: ((n.-1)%:R : R) n0 nz => N n0 nz.
  set A := \sum_(i | _) u i x.1; set B := \sum_(i | _) v i x.2; set P := \sum_(i | _) _ * _.
  by move: A B P => A B P; field; rewrite n0 nz.
have none : forall (F : 'I_n -> R), \sum_(i | i != i0) F i = 0.
  move=> F; rewrite big_pred0 // => i; apply/negbTE; rewrite negbK; apply/eqP/val_inj.
  have : n = 1%N by apply/eqP; rewrite -(prednK n_gt0) eqSS -(pnatr_eq0 R) n0.
  move=> n_1; have /eqP -> : val i == 0%N by rewrite -leqn0 -ltnS -n_1 ltn_ord.
  by apply/esym/eqP; rewrite -leqn0 -ltnS -n_1 ltn_ord.
by rewrite !none nE n0 add0r invr1; ring.
Qed.

(* Squared norms of the changed row against the others, and of the covariances. *)
Lemma change_bound (p q c : R) :
  0 <= p -> 0 <= q -> 0 <= c ->
  \sum_a (u i0 a - others u a) ^+ 2 <= p -> \sum_a (u' i0 a - others u a) ^+ 2 <= p ->
  \sum_b (v i0 b - others v b) ^+ 2 <= q -> \sum_b (v' i0 b - others v b) ^+ 2 <= q ->
  \sum_x cross u v x ^+ 2 <= c -> \sum_x cross u' v' x ^+ 2 <= c ->
  (\sum_x cross u v x ^+ 2 - \sum_x cross u' v' x ^+ 2) ^+ 2 <= 16%:R * (p * q * c) / n%:R ^+ 2.
Proof.
move=> p0 q0 c0 up up' vq vq' uc uc'.
have -> : \sum_x cross u v x ^+ 2 - \sum_x cross u' v' x ^+ 2
          = \sum_x (cross u v x - cross u' v' x) * (cross u v x + cross u' v' x).
  by rewrite -sumrB; apply: eq_bigr => x _; ring.
apply: le_trans (dot_sq _ _) _.
have plus : \sum_x (cross u v x + cross u' v' x) ^+ 2 <= 4%:R * c.
  apply: (@le_trans _ _ (\sum_x (2%:R * cross u v x ^+ 2 + 2%:R * cross u' v' x ^+ 2))).
    apply: ler_sum => x _; rewrite -subr_ge0.
    have -> : forall a b : R, 2%:R * a ^+ 2 + 2%:R * b ^+ 2 - (a + b) ^+ 2 = (a - b) ^+ 2 by move=> a b; ring.
    exact: sqr_ge0.
  rewrite big_split /= -!mulr_sumr; apply: (@le_trans _ _ (2%:R * c + 2%:R * c)).
    by apply: ler_add; apply: ler_wpmul2l; rewrite ?ler0n.
  by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
have tensor (f : 'I_d -> R) (g : 'I_e -> R) :
    \sum_(x : 'I_d * 'I_e) (f x.1 * g x.2) ^+ 2 = (\sum_a f a ^+ 2) * (\sum_b g b ^+ 2).
  rewrite -(pair_big xpredT xpredT (fun a b => (f a * g b) ^+ 2)) /= big_distrlr /=.
  by apply: eq_bigr => a _; apply: eq_bigr => b _; ring.
have minus : \sum_x (cross u v x - cross u' v' x) ^+ 2 <= 4%:R * (p * q) / n%:R ^+ 2.
  under eq_bigr do rewrite cross_change exprMn.
  rewrite -mulr_sumr mulrC; apply: ler_pmul.
  - by apply: sumr_ge0 => x _; exact: sqr_ge0.
  - exact: sqr_ge0.
  - apply: (@le_trans _ _ (\sum_(x : 'I_d * 'I_e)
        (2%:R * ((u i0 x.1 - others u x.1) * (v i0 x.2 - others v x.2)) ^+ 2
         + 2%:R * ((u' i0 x.1 - others u x.1) * (v' i0 x.2 - others v x.2)) ^+ 2))).
      apply: ler_sum => x _; rewrite -subr_ge0.
      have -> : forall a b : R, 2%:R * a ^+ 2 + 2%:R * b ^+ 2 - (a - b) ^+ 2 = (a + b) ^+ 2 by move=> a b; ring.
      exact: sqr_ge0.
    rewrite big_split /= -!mulr_sumr.
    rewrite (tensor (fun a => u i0 a - others u a) (fun b => v i0 b - others v b)).
    rewrite (tensor (fun a => u' i0 a - others u a) (fun b => v' i0 b - others v b)).
    apply: (@le_trans _ _ (2%:R * (p * q) + 2%:R * (p * q))).
      by apply: ler_add; apply: ler_wpmul2l; rewrite ?ler0n //; apply: ler_pmul => //;
         apply: sumr_ge0 => a _; exact: sqr_ge0.
    by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
  - have -> : ((n.-1)%:R / n%:R ^+ 2) ^+ 2 = ((n.-1)%:R / n%:R) ^+ 2 * (n%:R ^+ 2)^-1 :> R by field.
    rewrite -[X in _ <= X]mul1r; apply: ler_wpmul2r; first by rewrite invr_ge0 sqr_ge0.
    by rewrite expr_le1 ?divr_ge0 ?ler0n // ler_pdivr_mulr // mul1r ler_nat leq_pred.
apply: (@le_trans _ _ (4%:R * (p * q) / n%:R ^+ 2 * (4%:R * c))).
  by apply: ler_pmul => //; apply: sumr_ge0 => x _; exact: sqr_ge0.
by rewrite le_eqVlt; apply/orP; left; apply/eqP; field.
Qed.

End Features.

(* begin lemma of Theorem 5.1, V-statistic bracket *)
(* The bracket of the V-statistic k_ij (l_ij + l_qr - 2 l_iq). *)
Theorem bracket_bound (R : realFieldType) (mu a b c : R) :
  `|a| <= mu -> `|b| <= mu -> `|c| <= mu -> `|a + b - 2%:R * c| <= 4%:R * mu.
(* end lemma of Theorem 5.1, V-statistic bracket *)
Proof.
move=> am bm cm; apply: le_trans (ler_norm_sub _ _) _.
have -> : 4%:R * mu = mu + mu + 2%:R * mu by ring.
apply: ler_add; last by rewrite normrM ger0_norm ?ler0n // ler_wpmul2l ?ler0n.
by apply: le_trans (ler_norm_add _ _) _; apply: ler_add.
Qed.

(* begin lemma of Theorem 5.1, bracket of non-negative kernels *)
Theorem bracket_bound_nonnegative (R : realFieldType) (mu a b c : R) :
  0 <= a <= mu -> 0 <= b <= mu -> 0 <= c <= mu -> `|a + b - 2%:R * c| <= 2%:R * mu.
(* end lemma of Theorem 5.1, bracket of non-negative kernels *)
Proof.
move=> /andP[a0 am] /andP[b0 bm] /andP[c0 cm]; rewrite ler_norml; apply/andP; split.
  rewrite ler_oppl opprB ler_subl_addr; apply: (@le_trans _ _ (2%:R * mu)).
    by apply: ler_wpmul2l; rewrite ?ler0n.
  by rewrite ler_addl addr_ge0.
rewrite ler_subl_addr; apply: (@le_trans _ _ (2%:R * mu)).
  by rewrite -[2%:R]/(1 + 1) mulrDl mul1r; apply: ler_add.
by rewrite ler_addl mulr_ge0 ?ler0n.
Qed.

(* begin lemma of Theorem 5.1, increments *)
(* The squared distance of two features is k(x, x) - 2 k(x, y) + k(y, y). *)
Definition distance2 (R : realFieldType) (X : Type) (k : X -> X -> R) (x y : X) : R :=
  k x x - 2%:R * k x y + k y y.

Theorem kernel_increment (R : realFieldType) (X : Type) (k : X -> X -> R) (nu : R) (x y x' y' : X) :
  kernel_on k -> (forall x, k x x <= nu) ->
  (k x y - k x' y') ^+ 2 <= 2%:R * nu * (distance2 k x x' + distance2 k y y').
(* end lemma of Theorem 5.1, increments *)
Proof.
move=> kk kn; pose pt (i : 'I_4) := nth x [:: x; y; x'; y'] i.
have h := kk 4%N pt; set K := fun i j => k (pt i) (pt j) in h.
pose i0 : 'I_4 := Ordinal (isT : (0 < 4)%N); pose i1 : 'I_4 := Ordinal (isT : (1 < 4)%N).
pose i2 : 'I_4 := Ordinal (isT : (2 < 4)%N); pose i3 : 'I_4 := Ordinal (isT : (3 < 4)%N).
have bound a b c : (form K (fun i => 1 * point R a i + -1 * point R b i) (point R c)) ^+ 2
                   <= (K a a - 2%:R * K a b + K b b) * nu.
  apply: le_trans (form_cauchy_schwarz _ _ h) _; rewrite quadD; last exact: (proj1 h).
  rewrite /quad !form_points.
  have -> : 1 ^+ 2 * K a a + 2%:R * 1 * -1 * K a b + (-1) ^+ 2 * K b b = K a a - 2%:R * K a b + K b b.
    by ring.
  apply: ler_wpmul2l; last exact: kn.
  have := proj2 h (fun i => 1 * point R a i + -1 * point R b i).
  rewrite quadD; last exact: (proj1 h).
  by rewrite /quad !form_points; congr (0 <= _); ring.
have b1 := bound i0 i2 i1; have b2 := bound i1 i3 i2.
rewrite !formDl !form_points in b1 b2; rewrite /K /pt /= in b1 b2.
have s : k x' y = k y x' by have := proj1 h i1 i2; rewrite /K /pt /= => ->.
have s' : k x' y' = k y' x' by have := proj1 h i3 i2; rewrite /K /pt /= => ->.
set a := 1 * k x y + -1 * k x' y in b1; set b := 1 * k y x' + -1 * k y' x' in b2.
have -> : k x y - k x' y' = a + b by rewrite /a /b s s'; ring.
apply: (@le_trans _ _ (2%:R * a ^+ 2 + 2%:R * b ^+ 2)).
  by rewrite -subr_ge0 (_ : _ - _ = (a - b) ^+ 2) ?sqr_ge0 //; ring.
have -> : 2%:R * nu * (distance2 k x x' + distance2 k y y')
          = 2%:R * (distance2 k x x' * nu) + 2%:R * (distance2 k y y' * nu) by ring.
by apply: ler_add; apply: ler_wpmul2l; rewrite ?ler0n.
Qed.

(* begin step to Corollary 5.2 *)
(* Omega carries the sample; [gap w h] is HSIC(h) - HSIC_n(h) on the outcome w. If the
   event that all gaps are at most B has probability at least 1 - delta, then so has the
   event that the gap of the learned encoder is at most B. *)
Theorem learned_encoder (R : realFieldType) (Omega : finType) (Encoder : Type)
    (P : Omega -> R) (gap : Omega -> Encoder -> R) (learned : Omega -> Encoder)
    (B delta : R) (event : pred Omega) :
  law P -> (forall w, event w -> forall h, `|gap w h| <= B) ->
  1 - delta <= \sum_(w | event w) P w ->
  1 - delta <= \sum_(w | gap w (learned w) <= B) P w.
(* end step to Corollary 5.2 *)
Proof.
move=> [P0 _] uniform /le_trans; apply.
rewrite [X in _ <= X](bigID event) /=; apply: ler_paddr; first by apply: sumr_ge0.
rewrite (eq_bigl (fun w => (gap w (learned w) <= B) && event w)) // => w.
by case: (boolP (event w)) => ew; rewrite ?andbF ?andbT // (le_trans (ler_norm _)) // uniform.
Qed.

Lemma features (R : rcfType) (T : finType) (k : T -> T -> R) : kernel k ->
  exists r (w : T -> 'I_r -> R), forall x y, k x y = \sum_a w x a * w y a.
Proof.
move=> /kernel_squares[r [d [v [d0 ek]]]]; exists r, (fun x a => Num.sqrt (d a) * v a x) => x y.
rewrite ek; apply: eq_bigr => a _.
by rewrite mulrACA -expr2 sqr_sqrtr.
Qed.

Lemma centered_features (R : realFieldType) n d (K : 'M[R]_n) (u : 'I_n -> 'I_d -> R) :
  (forall i j, K i j = \sum_a u i a * u j a) ->
  forall i j, centered K i j
    = squares (fun=> 1) (fun a => recenter (fun i => u i a)) i j.
Proof.
move=> KE i j.
have KS x y : K x y = squares (fun=> 1) (fun a i => u i a) x y.
  by rewrite KE; apply: eq_bigr => a _; rewrite mul1r.
rewrite -(form_points (fun i j => centered K i j) i j) form_centered (eq_kernel_form _ _ KS) form_squares.
by apply: eq_bigr => a _; rewrite !sum_recenter !sum_point.
Qed.

Lemma hsic_features (R : realFieldType) n d e (K L : 'M[R]_n)
    (u : 'I_n -> 'I_d -> R) (v : 'I_n -> 'I_e -> R) :
  (forall i j, K i j = \sum_a u i a * u j a) -> (forall i j, L i j = \sum_b v i b * v j b) ->
  hsic_n K L = \sum_x cross u v x ^+ 2.
Proof.
move=> KE LE; have cK := centered_features KE; have cL := centered_features LE.
have sL i j : centered L i j = centered L j i.
  by rewrite !cL; apply: eq_bigr => b _; congr (_ * _); rewrite mulrC.
rewrite /hsic_n (trace_squares sL cK) mulr_sumr.
rewrite -(pair_big xpredT xpredT (fun a b => cross u v (a, b) ^+ 2)) /=.
apply: eq_bigr => a _; rewrite mul1r /quad (eq_kernel_form _ _ cL) form_squares mulr_sumr.
by apply: eq_bigr => b _; rewrite mul1r /cross exprMn exprVn expr2.
Qed.

(* begin lemma of Theorem 5.1, largest value *)
Theorem largest_value (R : rcfType) (X Y : Type) (k : X -> X -> R) (l : Y -> Y -> R)
    n (x : 'I_n -> X) (y : 'I_n -> Y) (nu mu : R) :
  (0 < n)%N -> kernel_on k -> kernel_on l -> (forall x, k x x <= nu) -> (forall y, l y y <= mu) ->
  hsic_n (gram k x) (gram l y) <= nu * mu.
(* end lemma of Theorem 5.1, largest value *)
Proof.
move=> n0 kk kl kn lm.
have [d [u uE]] := features (gram_kernel x kk); have [e [v vE]] := features (gram_kernel y kl).
rewrite (hsic_features uE vE); apply: cross_norm => // i.
  by rewrite (eq_bigr (fun a => u i a * u i a)) // -uE mxE.
by rewrite (eq_bigr (fun a => v i a * v i a)) // -vE mxE.
Qed.

Lemma centering_idem (R : realFieldType) n : centering R n *m centering R n = centering R n.
Proof.
case: n => [|n]; first by rewrite [LHS]flatmx0 [RHS]flatmx0.
rewrite {1}/centering mulmxBl mul1mx -scalemxAl (_ : const_mx 1 *m centering R n.+1 = 0) ?scaler0 ?subr0 //.
apply/matrixP => i j; rewrite !mxE /centering.
rewrite (eq_bigr (fun a => (a == j)%:R - n.+1%:R^-1)); last first.
  by move=> a _; rewrite !mxE mul1r mulr1.
rewrite sumrB sumr_const card_ord (bigD1 j) //= eqxx big1 => [|a /negbTE -> //].
by rewrite addr0 -[_ *+ n.+1]mulr_natr mulVf ?pnatr_eq0 // subrr.
Qed.

Lemma hsic_n_left (R : realFieldType) n (K L : 'M[R]_n) :
  hsic_n K L = (n%:R ^+ 2)^-1 * \tr (K *m centered L).
Proof.
rewrite /hsic_n; congr (_ * _); rewrite /centered; set H := centering R n.
have HH : H *m H = H by exact: centering_idem.
rewrite -[H *m K *m H]mulmxA -[H *m (K *m H) *m _]mulmxA mxtrace_mulC; congr (\tr _).
by rewrite -!mulmxA HH [H *m (H *m _)]mulmxA HH.
Qed.

Lemma centered_sum (R : realFieldType) n (L : 'M[R]_n) : \sum_i \sum_j centered L i j = 0.
Proof.
have -> : \sum_i \sum_j centered L i j = form (fun i j => centered L i j) (fun=> 1) (fun=> 1).
  by apply: eq_bigr => i _; apply: eq_bigr => j _; rewrite !mul1r.
have r0 i : recenter (fun _ : 'I_n => 1 : R) i = 0.
  case: n i {L} => [|n] i; first by case: i.
  by rewrite /recenter sumr_const card_ord mulVf ?pnatr_eq0 // subrr.
by rewrite form_centered /form big1 // => i _; rewrite big1 // => j _; rewrite r0 !mul0r.
Qed.

(* Subtracting nu/2 from the entries of K changes nothing. *)
Lemma hsic_n_half (R : realFieldType) n (K L : 'M[R]_n) nu : (0 < n)%N ->
  (forall i j, L i j = L j i) -> (forall i j, 0 <= K i j <= nu) ->
  hsic_n K L ^+ 2 <= (nu / 2%:R) ^+ 2 * hsic_n L L.
Proof.
move=> n0 sL Kn; have nn : n%:R != 0 :> R by rewrite pnatr_eq0 -lt0n.
have tL : L^T = L by apply/matrixP => i j; rewrite mxE.
have tc : (centered L)^T = centered L by rewrite /centered !trmx_mul centering_sym tL mulmxA.
have cs i j : centered L i j = centered L j i by rewrite -[in LHS]tc mxE.
pose f (x : 'I_n * 'I_n) := K x.1 x.2 - nu / 2%:R; pose g (x : 'I_n * 'I_n) := centered L x.1 x.2.
have -> : hsic_n K L = (n%:R ^+ 2)^-1 * \sum_x f x * g x.
  rewrite hsic_n_left trace_sum; congr (_ * _).
  rewrite -(pair_big xpredT xpredT (fun i j => f (i, j) * g (i, j))) /=.
  have -> : \sum_i \sum_j f (i, j) * g (i, j)
            = \sum_i \sum_j K i j * centered L j i - nu / 2%:R * \sum_i \sum_j centered L i j.
    rewrite mulr_sumr -sumrB; apply: eq_bigr => i _; rewrite mulr_sumr -sumrB; apply: eq_bigr => j _.
    by rewrite /f /g /= mulrBl cs.
  by rewrite centered_sum mulr0 subr0.
have -> : hsic_n L L = (n%:R ^+ 2)^-1 * \sum_x g x ^+ 2.
  rewrite /hsic_n trace_sum; congr (_ * _).
  rewrite -(pair_big xpredT xpredT (fun i j => g (i, j) ^+ 2)) /=.
  by apply: eq_bigr => i _; apply: eq_bigr => j _; rewrite [centered L j i]cs expr2.
have fsum : \sum_x f x ^+ 2 <= n%:R ^+ 2 * (nu / 2%:R) ^+ 2.
  apply: (@le_trans _ _ (\sum_(x : 'I_n * 'I_n) (nu / 2%:R) ^+ 2)); last first.
    by rewrite sumr_const card_prod card_ord -mulr_natl natrM expr2.
  apply: ler_sum => x _; rewrite -subr_ge0 /f; have /andP[k0 kn] := Kn x.1 x.2.
  have -> : forall t : R, (nu / 2%:R) ^+ 2 - (t - nu / 2%:R) ^+ 2 = t * (nu - t) by move=> t; field.
  by rewrite mulr_ge0 // subr_ge0.
rewrite exprMn exprVn.
apply: (@le_trans _ _ (((n%:R ^+ 2) ^+ 2)^-1 * ((\sum_x f x ^+ 2) * (\sum_x g x ^+ 2)))).
  by apply: ler_wpmul2l; rewrite ?invr_ge0 ?sqr_ge0 //; exact: dot_sq.
set G := \sum_x g x ^+ 2; have G0 : 0 <= G by apply: sumr_ge0 => x _; exact: sqr_ge0.
apply: (@le_trans _ _ (((n%:R ^+ 2) ^+ 2)^-1 * (n%:R ^+ 2 * (nu / 2%:R) ^+ 2 * G))).
  by apply: ler_wpmul2l; rewrite ?invr_ge0 ?sqr_ge0 //; apply: ler_wpmul2r.
by rewrite le_eqVlt; apply/orP; left; apply/eqP; field.
Qed.

(* begin lemma of Theorem 5.1, largest value of non-negative kernels *)
Theorem quarter (R : realFieldType) (X Y : Type) (k : X -> X -> R) (l : Y -> Y -> R)
    n (x : 'I_n -> X) (y : 'I_n -> Y) (nu mu : R) :
  (0 < n)%N -> kernel_on k -> kernel_on l ->
  (forall a b, 0 <= k a b <= nu) -> (forall a b, 0 <= l a b <= mu) ->
  hsic_n (gram k x) (gram l y) <= nu * mu / 4%:R.
(* end lemma of Theorem 5.1, largest value of non-negative kernels *)
Proof.
move=> n0 kk kl kn lm; set K := gram k x; set L := gram l y.
have Kn i j : 0 <= K i j <= nu by rewrite mxE.
have Lm i j : 0 <= L i j <= mu by rewrite mxE.
have sL := proj1 (gram_kernel y kl).
pose i0 := Ordinal n0.
have nu0 : 0 <= nu by have /andP[h1 h2] := Kn i0 i0; exact: le_trans h2.
have mu0 : 0 <= mu by have /andP[h1 h2] := Lm i0 i0; exact: le_trans h2.
have h := hsic_n_half n0 sL Kn; have h' := hsic_n_half n0 sL Lm.
have L0 : 0 <= hsic_n L L by apply: hsic_n_ge0; exact: gram_kernel.
have Lmax : hsic_n L L <= (mu / 2%:R) ^+ 2.
  move: L0; rewrite le_eqVlt => /orP[/eqP <-|Lp]; first exact: sqr_ge0.
  by rewrite -(ler_pmul2r Lp) -expr2.
have e : nu * mu / 4%:R = nu / 2%:R * (mu / 2%:R) by field.
rewrite -ler_sqr ?nnegrE; first 1 last.
- by apply: hsic_n_ge0; exact: gram_kernel.
- by rewrite divr_ge0 ?mulr_ge0 ?ler0n.
apply: le_trans h _; rewrite e [X in _ <= X]exprMn; apply: ler_wpmul2l => //; exact: sqr_ge0.
Qed.

(* [near] says that the kernels are non-negative, which gives the better constant. *)
Lemma row_change (R : rcfType) (X Y : Type) (k : X -> X -> R) (l : Y -> Y -> R)
    n (x x' : 'I_n -> X) (y y' : 'I_n -> Y) (i0 : 'I_n) (nu mu : R) (near : bool) :
  kernel_on k -> kernel_on l -> (forall x, k x x <= nu) -> (forall y, l y y <= mu) ->
  (near -> (forall a b, 0 <= k a b) /\ (forall a b, 0 <= l a b)) ->
  (forall i, i != i0 -> x i = x' i /\ y i = y' i) ->
  let c := if near then nu * mu / 4%:R else nu * mu in
  hsic_n (gram k x) (gram l y) <= c -> hsic_n (gram k x') (gram l y') <= c ->
  `|hsic_n (gram k x) (gram l y) - hsic_n (gram k x') (gram l y')|
    <= (if near then 4%:R else 16%:R) * (nu * mu) / n%:R.
Proof.
move=> kk kl kn lm pos_near same top htop htop'.
have n0 : (0 < n)%N by apply: leq_trans (ltn_ord i0).
have n1 : (0 : R) < n%:R by rewrite ltr0n.
pose old i : 'I_n.+1 := lift ord0 i.
pose new i : 'I_n.+1 := if i == i0 then ord0 else lift ord0 i.
have lifted (W : Type) (w w' : 'I_n -> W) (h : W -> W -> R) (c : R) :
    kernel_on h -> (forall t, h t t <= c) -> (near -> forall a b, 0 <= h a b) ->
    (forall i, i != i0 -> w i = w' i) ->
    exists d (u : 'I_n.+1 -> 'I_d -> R),
      [/\ near -> forall t t', 0 <= \sum_a u t a * u t' a, forall i j, gram h w i j = \sum_a u (old i) a * u (old j) a,
          forall i j, gram h w' i j = \sum_a u (new i) a * u (new j) a
        & forall t, \sum_a u t a ^+ 2 <= c].
  move=> kh hc h0 ww; pose pt t := if unlift ord0 t is Some i then w i else w' i0.
  have [d [u uE]] := features (kh n.+1 pt); exists d, u; split=> [hn t t'|i j|i j|t].
  - by rewrite -uE; exact: h0.
  - by rewrite mxE -uE /pt /old !liftK.
  - rewrite mxE -uE /pt /new; congr (h _ _).
      by case: eqP => [->|/eqP ii]; rewrite ?unlift_none // liftK ww.
    by case: eqP => [->|/eqP ii]; rewrite ?unlift_none // liftK ww.
  - by rewrite (eq_bigr (fun a => u t a * u t a)) // -uE.
have [d [u [up uE uE' un]]] := lifted X x x' k nu kk kn (fun h => proj1 (pos_near h)) (fun i h => proj1 (same i h)).
have [e [v [vp vE vE' vn]]] := lifted Y y y' l mu kl lm (fun h => proj2 (pos_near h)) (fun i h => proj2 (same i h)).
have pos m (f : 'I_m -> R) : 0 <= \sum_a f a ^+ 2 by apply: sumr_ge0 => a _; exact: sqr_ge0.
have nu0 : 0 <= nu by apply: le_trans (un ord0).
have mu0 : 0 <= mu by apply: le_trans (vn ord0).
have agree i : i != i0 -> old i = new i by rewrite /new => /negbTE ->.
pose factor : R := if near then 2%:R else 4%:R.
have factor0 : 0 <= factor by rewrite /factor; case: (near); rewrite ler0n.
have far m (w : 'I_n.+1 -> 'I_m -> R) c t : 0 <= c ->
    (near -> forall t t', 0 <= \sum_a w t a * w t' a) -> (forall t, \sum_a w t a ^+ 2 <= c) ->
    \sum_a (w t a - others i0 (fun i => w (old i)) a) ^+ 2 <= factor * c.
  move=> c0 wp wc.
  have mean_norm : \sum_a others i0 (fun i => w (old i)) a ^+ 2 <= c.
    have [N0|N0] := eqVneq ((n.-1)%:R : R) 0.
      by rewrite /others N0 invr0; rewrite big1 // => a _; rewrite mul0r expr0n.
    have N1 : (0 : R) < (n.-1)%:R by rewrite lt_neqAle eq_sym N0 ler0n.
    apply: (@le_trans _ _ (\sum_a (n.-1)%:R^-1 * \sum_(i | i != i0) w (old i) a ^+ 2)).
      apply: ler_sum => a _; rewrite /others exprMn expr2 -mulrA; apply: ler_wpmul2l; first by rewrite invr_ge0 ltW.
      rewrite ler_pdivr_mull //.
      have := dot_sq (fun i : 'I_n => (i != i0)%:R : R) (fun i => (i != i0)%:R * w (old i) a).
      have -> : \sum_i (i != i0)%:R * ((i != i0)%:R * w (old i) a) = \sum_(i | i != i0) w (old i) a.
        by rewrite [RHS]big_mkcond; apply: eq_bigr => i _; case: eqP => _ /=; rewrite ?mul0r ?mul1r.
      have -> : \sum_(i : 'I_n) ((i != i0)%:R : R) ^+ 2 = (n.-1)%:R.
        rewrite (eq_bigr (fun i => if i != i0 then 1 else 0)); last by move=> i _; case: eqP; rewrite ?expr1n ?expr0n.
        rewrite -big_mkcond sumr_const; congr (_%:R); have := cardC1 i0; rewrite card_ord => <-.
        by apply: eq_card => i; rewrite !inE.
      have -> // : \sum_i ((i != i0)%:R * w (old i) a) ^+ 2 = \sum_(i | i != i0) w (old i) a ^+ 2.
      by rewrite [RHS]big_mkcond; apply: eq_bigr => i _; case: eqP => _ /=; rewrite ?mul0r ?mul1r ?expr0n.
    rewrite -mulr_sumr ler_pdivr_mull // exchange_big /=.
    apply: (@le_trans _ _ (\sum_(i | i != i0) c)); first by apply: ler_sum => i _; exact: wc.
    rewrite sumr_const -[c *+ _]mulr_natl; apply: ler_wpmul2r => //; rewrite ler_nat.
    by have := cardC1 i0; rewrite card_ord => <-; apply: eq_leq; apply: eq_card => i; rewrite !inE.
  rewrite /factor; case: (boolP near) => [hn|_].
    set o := others i0 (fun i => w (old i)) in mean_norm *.
    have -> : \sum_a (w t a - o a) ^+ 2
              = \sum_a w t a ^+ 2 + \sum_a o a ^+ 2 - 2%:R * \sum_a w t a * o a.
      by rewrite mulr_sumr -big_split -sumrB; apply: eq_bigr => a _ /=; ring.
    have inner_ge0 : 0 <= \sum_a w t a * o a.
      have -> : \sum_a w t a * o a = (n.-1)%:R^-1 * \sum_(i | i != i0) \sum_a w t a * w (old i) a.
        rewrite exchange_big mulr_sumr; apply: eq_bigr => a _ /=.
        by rewrite /o /others -mulr_sumr mulrCA.
      by rewrite mulr_ge0 ?invr_ge0 ?ler0n // sumr_ge0 // => i _; exact: wp.
    rewrite ler_subl_addr (_ : 2%:R * c = c + c); last by ring.
    by apply: ler_paddr; [rewrite mulr_ge0 ?ler0n | apply: ler_add].
  apply: (@le_trans _ _ (\sum_a (2%:R * w t a ^+ 2 + 2%:R * others i0 (fun i => w (old i)) a ^+ 2))).
    apply: ler_sum => a _; rewrite -subr_ge0.
    have -> : forall p q : R, 2%:R * p ^+ 2 + 2%:R * q ^+ 2 - (p - q) ^+ 2 = (p + q) ^+ 2 by move=> p q; ring.
    exact: sqr_ge0.
  rewrite big_split /= -!mulr_sumr (_ : 4%:R * c = 2%:R * c + 2%:R * c); last by ring.
  by apply: ler_add; apply: ler_wpmul2l; rewrite ?ler0n.
rewrite (hsic_features uE vE) in htop *; rewrite (hsic_features uE' vE') in htop' *.
have top0 : 0 <= top by rewrite /top; case: (near); rewrite ?divr_ge0 ?mulr_ge0 ?ler0n.
have square := @change_bound R n d e n0 i0 (fun i => u (old i)) (fun i => u (new i))
  (fun i => v (old i)) (fun i => v (new i)) _ _ (factor * nu) (factor * mu) top.
rewrite -ler_sqr ?nnegrE ?normr_ge0 //; last first.
  by rewrite divr_ge0 ?ler0n // mulr_ge0 ?mulr_ge0 //; case: (near); rewrite ler0n.
rewrite real_normK ?num_real //.
apply: le_trans (square _ _ _ _ _ _ _ _ _ _ _) _ => //.
- by move=> i ii; rewrite (agree i ii).
- by move=> i ii; rewrite (agree i ii).
- exact: mulr_ge0.
- exact: mulr_ge0.
- exact: far.
- exact: far.
- exact: far.
- exact: far.
rewrite le_eqVlt; apply/orP; left; apply/eqP; rewrite /factor /top.
by case: (near); field; rewrite gt_eqF.
Qed.

(* begin lemma of Theorem 5.1, bounded differences *)
Theorem bounded_difference (R : rcfType) (X Y : Type) (k : X -> X -> R) (l : Y -> Y -> R)
    n (x x' : 'I_n -> X) (y y' : 'I_n -> Y) (i0 : 'I_n) (nu mu : R) :
  kernel_on k -> kernel_on l -> (forall x, k x x <= nu) -> (forall y, l y y <= mu) ->
  (forall i, i != i0 -> x i = x' i /\ y i = y' i) ->
  `|hsic_n (gram k x) (gram l y) - hsic_n (gram k x') (gram l y')| <= 16%:R * (nu * mu) / n%:R.
(* end lemma of Theorem 5.1, bounded differences *)
Proof.
move=> kk kl kn lm same; have n0 : (0 < n)%N by apply: leq_trans (ltn_ord i0).
by apply: (@row_change _ _ _ _ _ _ _ _ _ _ i0 _ _ false) => //; exact: largest_value.
Qed.

(* begin lemma of Theorem 5.1, bounded differences of non-negative kernels *)
Theorem bounded_difference_nonnegative (R : rcfType) (X Y : Type)
    (k : X -> X -> R) (l : Y -> Y -> R)
    n (x x' : 'I_n -> X) (y y' : 'I_n -> Y) (i0 : 'I_n) (nu mu : R) :
  kernel_on k -> kernel_on l ->
  (forall a b, 0 <= k a b <= nu) -> (forall a b, 0 <= l a b <= mu) ->
  (forall i, i != i0 -> x i = x' i /\ y i = y' i) ->
  `|hsic_n (gram k x) (gram l y) - hsic_n (gram k x') (gram l y')| <= 4%:R * (nu * mu) / n%:R.
(* end lemma of Theorem 5.1, bounded differences of non-negative kernels *)
Proof.
move=> kk kl kn lm same; have n0 : (0 < n)%N by apply: leq_trans (ltn_ord i0).
apply: (@row_change _ _ _ _ _ _ _ _ _ _ i0 _ _ true) => //.
- by move=> a; have /andP[] := kn a a.
- by move=> b; have /andP[] := lm b b.
- by split=> a b; [have /andP[] := kn a b | have /andP[] := lm a b].
- exact: quarter.
- exact: quarter.
Qed.

(* The hypotheses hold for the kernel 1[x = y] on two points. *)
Example hypotheses_hold (R : realFieldType) :
  kernel_on (@equal R bool_finType) /\ forall a b, 0 <= @equal R bool_finType a b <= 1.
Proof.
split; first by apply: finite_kernel_on; exact: equal_kernel.
by move=> a b; rewrite /equal; case: eqP => _; rewrite ?lexx ?ler01.
Qed.
